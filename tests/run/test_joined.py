"""A whole run says where its source shows what was measured; real TensorFlow."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest
from tests.run.conftest import environment

from stepscope.model.report.report import Report
from stepscope.report import json_report
from stepscope.tables.findings import Finding

if TYPE_CHECKING:
    from tests.run.conftest import Project

pytestmark = [pytest.mark.tf, pytest.mark.slow]

SLOW = """\
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(4)])
rows = np.random.rand(40, 8).astype("float32")


def score(rows):
    return [float(model.predict(row[None], verbose=0)[0, 0]) for row in rows]


def never_called(rows):
    total = 0.0
    for row in rows:
        total += float(model.predict(row[None], verbose=0)[0, 0])
    return total


print(sum(score(rows)))
"""
FIXED = SLOW.replace("print(sum(score(rows)))", "print(model.predict(rows, verbose=0).sum())")


def report(project: Project, program: str) -> Report:
    """The report of a program."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed in this environment")
    project.script("score.py", program)
    out = project.root / "report.json"
    variables = environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    done = project.run("run", "-q", "--report-json", str(out), "score.py", env=variables)
    assert done.returncode == 0, done.stderr
    return json_report.decode(out.read_bytes())


def source_only(found: Report) -> tuple[Finding, ...]:
    """What only the source shows."""
    assert found.source_check is not None
    return found.source_check.findings


def test_the_line_that_was_paid_for_is_joined_and_the_other_is_not(project: Project) -> None:
    """Two lines hold the same pattern: the one that ran is part of the detector's finding, the other was not seen."""
    found = report(project, SLOW)
    (finding,) = [f for f in found.findings if f.code == "HST003"]
    assert (finding.origin, finding.related_codes) == ("joined", ("KER001",))
    assert [p.line for p in finding.where] == [9]
    assert [r.rule for r in finding.remedies] == ["", "KER001"]
    assert not any(f.origin == "static" for f in found.findings)
    assert [(f.code, f.where[0].line, f.seen) for f in source_only(found)] == [("KER001", 15, False)]


def test_the_same_source_without_the_cost_is_info(project: Project) -> None:
    """The program that calls predict once has the patterns in its source, and nothing above info for them."""
    found = report(project, FIXED)
    assert [f.code for f in found.findings if f.severity != "info" and f.origin != "run"] == []
    assert [(f.code, f.seen) for f in source_only(found)] == [("KER001", False)] * 2
