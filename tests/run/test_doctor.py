"""``stepscope doctor`` as it is typed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import jsonschema
import pytest

from stepscope.model.report.doctor import Check, DoctorReport, Outcome
from stepscope.report import doctor_text
from stepscope.use_cases.doctor import exit_code

from .conftest import Project, environment

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "doctor-1.json"
GLOBAL = (
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/vm/swappiness",
)


def settings() -> list[str]:
    """Some of the host's settings."""
    return [Path(name).read_text() for name in GLOBAL if os.access(name, os.R_OK)]


@pytest.mark.timeout(180)
def test_json_and_exit_code(project: Project) -> None:
    """It works with no job, fits its schema, exits by what is to be changed, and changes nothing."""
    before = settings()
    done = project.run("doctor", "--json", "--no-import")
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert {check["group"] for check in report["checks"]} == {"profiling", "cpu", "memory", "libraries"}
    assert done.returncode == int(any(check["outcome"] == "change" for check in report["checks"]))
    assert settings() == before
    assert [path.name for path in project.root.iterdir()] == ["steps.py"]


def test_a_python_without_a_framework(project: Project) -> None:
    """Where TensorFlow is not installed it says so, and looks at the rest."""
    bare = project.script("bare", '#!/bin/sh\nexec "$STEPSCOPE_TEST_PYTHON" -S "$@"\n')
    bare.chmod(0o755)
    python = str(Path(os.path.realpath(sys.executable)))
    done = project.run("doctor", "--python", str(bare), env=environment(STEPSCOPE_TEST_PYTHON=python))
    assert done.returncode in (0, 1), done.stderr
    assert "not installed there" in done.stdout
    assert "Processors" in done.stdout


def test_no_such_python(project: Project) -> None:
    """One clear line and the documented exit code."""
    done = project.run("doctor", "--python", "/nowhere/python")
    assert done.returncode == 67
    assert done.stderr.startswith("stepscope: /nowhere/python cannot be run: No such file or directory")


def report_of(*outcomes: Outcome) -> DoctorReport:
    checks = tuple(
        Check(name=f"n{i}", group="cpu", title="a title", outcome=outcome, found="8", why="w" * 3, remedy="r")
        for i, outcome in enumerate(outcomes)
    )
    return DoctorReport(version="0", host="h", kernel="k", python="p", checks=checks)


def test_only_what_is_to_be_changed_changes_the_exit_code() -> None:
    """Notes and blind spots do not."""
    assert exit_code(report_of("ok", "note", "blind")) == 0
    assert exit_code(report_of("ok", "change")) == 1


def test_text_is_safe_and_fits() -> None:
    """No line is wider than the terminal, what would steer it is shown as text, and the last line counts."""
    report = report_of("ok", "note", "blind")
    hostile = Check(
        name="x", group="cpu", title="t", outcome="change", found="a\x1b[31m" + " word" * 60, why="y", remedy="z"
    )
    text = doctor_text.render(
        DoctorReport(version="0", host="h", kernel="k", python="p", checks=(*report.checks, hostile)), width=80
    )
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[-1] == "1 to change · 1 worth knowing · 1 not or only partly checked · 1 ok"
