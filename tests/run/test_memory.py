"""``stepscope memory`` as it is typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from .conftest import Project

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "memory-1.json"
SERVICE = """
import mmap, sys
block = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block[:] = b"x" * (16 << 20)
print("up", flush=True)
sys.stdin.read()
"""


def test_a_process_that_runs(project: Project) -> None:
    """It is looked at from outside and goes on; text and JSON say the same of it."""
    process = subprocess.Popen([sys.executable, "-S", "-c", SERVICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        text = project.run("memory", str(process.pid), "--seconds", "0.2")
        told = project.run("memory", str(process.pid), "--seconds", "0.2", "--json")
        assert process.poll() is None
    assert text.returncode == told.returncode == 0, text.stderr + told.stderr
    (one,) = json.loads(told.stdout)
    jsonschema.validate(one, json.loads(SCHEMA.read_text()))
    assert one["pid"] == process.pid
    assert one["anonymous_bytes"] >= 16 << 20
    assert len(one["looks"]) == 2
    assert f"pid {process.pid}" in text.stdout
    assert "address space" in text.stdout


def test_no_such_process(project: Project) -> None:
    """One clear line and the documented exit code."""
    process = subprocess.Popen(["true"])
    process.wait()
    done = project.run("memory", str(process.pid))
    assert done.returncode == 67
    assert done.stderr.startswith(f"stepscope: {process.pid}: no such process")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.getuid() == 0, reason="root may look at every process")
def test_another_users_process(project: Project) -> None:
    """It says how it can be done."""
    done = project.run("memory", "1")
    assert done.returncode == 67
    assert "sudo stepscope memory 1" in done.stderr


def test_no_session_and_one_without_looks(project: Project) -> None:
    """Each is one line with the next command."""
    absent = project.run("memory", "nowhere.stepscope")
    assert absent.returncode == 65
    assert "nowhere.stepscope: no such session" in absent.stderr
    session = project.root / "short.stepscope"
    session.mkdir()
    (session / "manifest.json").write_text(json.dumps({"schema_version": 1, "id": "0", "state": "finished"}))
    short = project.run("memory", "short.stepscope")
    assert short.returncode == 65
    assert "stepscope memory PID" in short.stderr
