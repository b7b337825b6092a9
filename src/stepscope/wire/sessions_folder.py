"""Where the sessions of ``stepscope enable`` are kept: the sidecar writes there, and a job that cannot be armed says so
there."""

from __future__ import annotations

import os

VARIABLE = "STEPSCOPE_SESSIONS"
"""Names the folder of the sessions for a job, whatever ``enable`` was told."""


def default() -> str:
    """The user's own folder. Source: XDG Base Directory Specification, XDG_STATE_HOME."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "stepscope", "sessions")


def candidates(said: str) -> list[str]:
    """Where sessions go, best first, if ``enable`` said ``said``: the last is for a home that cannot be written."""
    wanted = os.environ.get(VARIABLE, "") or said or default()
    return [wanted, "/var/tmp/stepscope-sessions-%d" % os.getuid()]  # noqa: S108 - checked to be our own
