"""The order in which a real worker's parameters come, from its runs while it trains; real TensorFlow."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run.conftest import Project, environment, stepping

from stepscope.report import json_report

pytestmark = [
    pytest.mark.tf,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
]
PROGRAM = Path(__file__).parent / "programs" / "slow_link.py"
LAYERS, BYTES = 6, 400 * 400 * 4
STEPS = 4


@pytest.mark.parametrize("ordered", [False, True], ids=["as-they-come", "ordered"])
def test_what_was_needed_when_and_when_it_came(project: Project, ordered: bool) -> None:
    """The layers are in the order of need, whatever came first; where the program orders its reads, none is early."""
    told = project.root / "told"
    command = ["run", "--budget", "0%", "--session", "s.stepscope", "--", sys.executable, str(PROGRAM), str(told)]
    job = subprocess.Popen(
        project.command(*command, *(["ordered"] if ordered else [])),
        cwd=project.root,
        env=environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES=""),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    project.started.append(job)
    (pid,) = stepping(project, 1, 5)
    done = project.run("trace", str(pid), "--steps", str(STEPS), "--force", patience_s=240.0)
    told.touch()
    assert job.wait(timeout=240) == 0
    assert done.returncode == 0, done.stderr
    report = json_report.decode((project.root / "s.stepscope" / "report.json").read_bytes())
    assert report.traced is not None
    order = report.traced.transfers
    assert order is not None
    reads = [f"Read{f'_{layer}' if layer else ''}/ReadVariableOp" for layer in range(LAYERS)]
    assert [one.name for one in order.transfers] == reads
    assert {(one.sender, one.size_bytes) for one in order.transfers} == {("ps 0", BYTES)}
    assert order.steps == STEPS
    assert order.gain_ns <= order.still_ns
    assert order.transfers[0].waited_ns > 0
    came = [one.came_ns for one in order.transfers]
    checked = {one.detector: one.outcome for one in report.checked}
    if ordered:
        assert came == sorted(came)
        assert (order.early, order.gain_high_ns, checked["DST010"]) == (0, 0, "clear")
    else:
        assert (order.early > 0) == any(one.early for one in order.transfers)
        assert checked["DST010"] in {"found", "clear"}
