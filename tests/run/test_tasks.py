"""What a whole run says of jobs of several processes and of sessions with hooks; real TensorFlow."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.run.conftest import environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.run.conftest import Project

pytestmark = [pytest.mark.tf, pytest.mark.slow]

PYTHONS = [p for p in os.environ.get("STEPSCOPE_TEST_PYTHONS", "").split(os.pathsep) if p] or [sys.executable]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def report(project: Project) -> Callable[..., dict[str, Any]]:
    """Runs a program of ``programs/`` under stepscope and returns its report."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed in this environment")

    def run(name: str, *args: str, python: str = sys.executable) -> dict[str, Any]:
        out = project.root / "report.json"
        command = ["run", "-q", "--report-json", str(out), "--", python, str(PROGRAMS / name), *args]
        done = project.run(*command, env=environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES=""))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(out.read_text())
        return found

    return run


@pytest.mark.parametrize("python", PYTHONS)
def test_parameter_server_and_worker(report: Callable[..., dict[str, Any]], python: str) -> None:
    """Both processes are in the session; the parameter server is said to be one, and nothing is found about it."""
    found = report("cluster.py", python=python)
    members = {m["member"]: m["role"] for m in found["session"]["members"]}
    assert members == {"worker 0": "steps", "ps 0": "server"}
    (train,) = [t for t in found["tasks"] if t["name"] == "train"]
    assert (train["kind"], train["count"], train["exact"]) == ("Session.run", 300, True)
    assert found["session"]["steps"] == 300
    assert [f["title"] for f in found["findings"] if f["severity"] != "info" and f["code"] != "CFG001"] == []


def test_a_slow_hook_is_found_and_runs_are_counted(report: Callable[..., dict[str, Any]]) -> None:
    """The step is the user's run, not a hook's; the hook is named with the line that sleeps; counts are exact."""
    found = report("hooked.py")
    counts = {t["name"]: t["count"] for t in found["tasks"] if t["kind"] == "Session.run"}
    assert (counts["train"], counts["loss:0"]) == (200, 20)
    (train,) = [t for t in found["tasks"] if t["name"] == "train"]
    assert {"text": "Slow: loss:0", "count": 200} in train["added"]
    assert found["session"]["steps"] == 200
    first = found["findings"][0]
    assert first["where"][0]["function"] == "Slow.after_run"
    if first["code"] == "HST004":  # too few looks fell on the sleep to say that it is one
        return
    source = (PROGRAMS / "hooked.py").read_text().splitlines()
    assert "time.sleep" in source[first["where"][0]["line"] - 1]
    assert "Slow.after_run sleeps" in first["title"], first["title"]
