"""The jobs that ``ps`` lists."""

from __future__ import annotations

import json
from typing import Any

from tests.always.conftest import tool


def listed() -> list[dict[str, Any]]:
    """What ``ps --json`` says."""
    done = tool("ps", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["schema"] == "stepscope.ps/1"
    jobs: list[dict[str, Any]] = said["jobs"]
    return jobs


def job_of(pid: int) -> dict[str, Any] | None:
    """One job of ``ps``."""
    return next((job for job in listed() if job["pid"] == pid), None)
