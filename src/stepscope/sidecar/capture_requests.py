"""Which requests for a capture a sidecar accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.api.capture_ask import KINDS, MAX_STEPS
from stepscope.sidecar import moment_captures

if TYPE_CHECKING:
    from stepscope.model.api.capture_ask import CaptureAsk

MAX_WAITING = 64
"""Requests that may wait at a time."""


def problem(ask: CaptureAsk, waiting: int) -> str:
    """Why a request is refused while so many wait; "" if it is accepted."""
    if ask.kind not in KINDS:
        return f"unknown kind of capture {ask.kind}; expected {', '.join(KINDS)}"
    if not 0 <= ask.steps <= MAX_STEPS:
        return f"{ask.steps} steps; expected 1 to {MAX_STEPS}"
    if waiting >= MAX_WAITING:
        return f"{MAX_WAITING} captures are already waiting"
    return moment_captures.problem(ask)
