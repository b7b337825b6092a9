"""How a sidecar died: left in the run directory by the launcher, which waits for it, for the next sidecar to tell."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from stepscope.launcher import rundir

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "sidecar-death.json"
_MOST_LETTERS = 200
"""Letters of its log's last line that are kept."""
_TAIL_BYTES = 16_384


def leave(run: Path, status: int, log_from: int) -> None:
    """Keep how it ended.

    Args:
        run: the run directory; without space there, the next sidecar only knows that it died.
        status: as ``os.waitpid`` gives it.
        log_from: size of the log when it was started.
    """
    with suppress(OSError):
        rundir.write_json(run / _NAME, {"how": _how(os.waitstatus_to_exitcode(status)), "said": said(run, log_from)})


def read(run: Path) -> str:
    """How the sidecar before this one ended, and its last words; empty if it is not known."""
    left = rundir.read_json(run / _NAME) or {}
    how, last = left.get("how"), left.get("said")
    if not isinstance(how, str):
        return ""
    return f"{how}, its log ends with {last!r}" if isinstance(last, str) and last else f"{how}, no word in its log"


def log_bytes(run: Path) -> int:
    """Size of the sidecar's log, to which each sidecar of the run appends."""
    try:
        return (run / rundir.SIDECAR_LOG).stat().st_size
    except OSError:
        return 0


def said(run: Path, log_from: int = 0) -> str:
    """The last line of the log from a byte on; empty if there is none."""
    try:
        with (run / rundir.SIDECAR_LOG).open("rb") as log:
            log.seek(max(log_from, log_bytes(run) - _TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip()[:_MOST_LETTERS] if lines else ""


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
