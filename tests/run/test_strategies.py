"""Real jobs of strategies that share work in other ways than by waiting for each other; real TensorFlow."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.run.conftest import environment

from stepscope.report import json_report

if TYPE_CHECKING:
    from tests.run.conftest import Project

    from stepscope.model.report.report import Report

pytestmark = [
    pytest.mark.tf,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
]
PROGRAMS = Path(__file__).parent / "programs"


def report_of(project: Project, program: str) -> Report:
    """The report of a program of this folder."""
    out = project.root / "report.json"
    command = ["run", "-q", "--report-json", str(out), "--", sys.executable, str(PROGRAMS / program)]
    quiet = environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    done = project.run(*command, env=quiet, patience_s=240.0)
    assert done.returncode == 0, done.stderr
    return json_report.decode(out.read_bytes())


def test_a_coordinator(project: Project) -> None:
    """It makes the steps; workers and parameter server serve it, and none is blamed for being waited for."""
    found = report_of(project, "coordinator.py")
    assert found.cluster is not None
    rows = {row.name: row for row in found.cluster.members}
    assert {name: row.serves for name, row in rows.items()} == {
        "chief 0": False,
        "worker 0": True,
        "worker 1": True,
        "ps 0": True,
    }
    assert rows["chief 0"].steps > 100
    assert found.cluster.missing == ()
    assert found.cluster.text == "waits are not compared: chief 0 makes the steps, the others serve it"
    assert [one.code for one in found.findings if one.code.startswith("DST")] == []


def test_replicas_on_two_logical_devices(project: Project) -> None:
    """One process is no cluster; a step has the samples of all replicas."""
    found = report_of(project, "mirrored.py")
    assert found.cluster is None
    (steps, samples) = (found.session.throughput.steps_per_s, found.session.throughput.samples_per_s)
    assert steps is not None
    assert samples == pytest.approx(64 * steps, rel=0.01)
    assert [one.code for one in found.findings if one.code.startswith("DST")] == []
