"""A process that could not be armed says so in the report, and runs as without us."""

import pytest

from .conftest import Project

BREAKS = """#!/bin/sh
rm "$STEPSCOPE_RUN/arm/stepscope/$1"
exec python3 -c '
import importlib.machinery, sys
from pathlib import Path
Path("keras.py").write_text("print(\\"keras\\")")
sys.path.insert(0, "")
import keras
print("on")
'
"""
"""Imports a module of the user's own that is called like a framework, which wakes the agent."""


@pytest.mark.parametrize(
    ("file", "where"),
    [
        ("agent/bootstrap.py", "arming"),
        ("agent/start.py", "start of the agent"),
        ("agent/state.py", "start of the agent"),
        ("wire/log.py", "start of the agent"),
    ],
)
def test_what_cannot_be_armed_is_stated(project: Project, file: str, where: str) -> None:
    """A broken agent costs the job nothing but its measurement; which part failed, and how, is a diagnostic."""
    project.script("job.sh", BREAKS).chmod(0o755)
    done = project.run("run", "--", "./job.sh", file)
    assert (done.returncode, done.stdout) == (0, "keras\non\n")
    assert "Traceback" not in done.stderr
    (text,) = [d.text for d in project.session().manifest.diagnostics if d.code == "DX115"]
    assert text.startswith("process ")
    assert f" was not measured: {where} failed: " in text
    assert "Error: " in text


def test_budget_is_stored(project: Project) -> None:
    """What the user allowed captures to cost stands in the session."""
    project.run("run", "--budget", "3%", "steps.py", "5")
    assert project.session().manifest.budget == "3%"
