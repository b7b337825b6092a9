"""A capture that is to be made, and why it waits: see ``sidecar.capturing``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.collector.captures.reason import Reason
    from stepscope.model.api.capture_ask import CaptureAsk
    from stepscope.sidecar.joint_captures import JointCapture
    from stepscope.sidecar.later_phase import LaterPhase
    from stepscope.sidecar.moment_captures import MomentCapture


class WantedCapture(Struct, kw_only=True):
    """A capture, or a series of them, that is to be made."""

    ask: CaptureAsk
    by: Reason
    due_ns: int
    left: int
    """Captures to go; -1: until the job ends."""
    made: int = 0
    says: str = ""
    """Why it waits."""
    until_ns: int = 0
    """How long it waits for steps, or its task; 0: it has not been looked for yet."""
    whole: bool = False
    """It follows one of fewer steps: it is worth its cost with all of them only."""
    moment: MomentCapture | None = None
    """What must happen in it."""
    joint: JointCapture | None = None
    """What the other tasks of the job capture at the same time."""
    phase: LaterPhase | None = None
    """Whose steps it is of, if not of the job's steps as the last analysis knows them."""
    dear: bool = False
    """It waits, or waited, because its steps are expected to cost more than the job has earned."""
