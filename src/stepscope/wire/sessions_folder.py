"""The folder for the sessions of ``stepscope enable``: the sidecar writes there, and a job that cannot be armed reports
it there.
"""

from __future__ import annotations

import os

VARIABLE = "STEPSCOPE_SESSIONS"
"""Variable that sets the folder of the sessions for a job and overrides ``enable``."""


def default() -> str:
    """The user's default folder. Source: XDG Base Directory Specification, XDG_STATE_HOME."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "stepscope", "sessions")


def candidates(said: str) -> list[str]:
    """The folders for sessions, best first, if ``enable`` was given ``said``: the last is for a home that is not
    writable.
    """
    wanted = os.environ.get(VARIABLE, "") or said or default()
    return [wanted, spare(os.getuid())]


def spare(uid: int) -> str:
    """The folder of a user whose home is not writable."""
    return "/var/tmp/stepscope-sessions-%d" % uid  # noqa: S108 - checked to be our own
