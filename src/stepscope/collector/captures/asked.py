"""What a process is asked to capture, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.collector.captures.reason import Reason
    from stepscope.model.log.events import CaptureTaken


class Aim(Struct, frozen=True, kw_only=True):
    """When a capture begins: so many steps after something has happened in the job."""

    pairs: tuple[tuple[int, int], ...] = ()
    """Pairs (kind, name) of the records whose writing is that moment."""
    flag: int = 0
    """Flag that these records must have; 0: none."""
    longer_ns: int = 0
    """A step longer than this is that moment; 0: no step is."""
    skip: int = 0
    """Steps after the moment before the capture begins."""
    seconds: float = 0.0
    """Longest wait for all this; after it the capture begins at once."""
    begin_ns: int = 0
    """CLOCK_MONOTONIC at which it begins, on every task of the job; 0: at no particular moment."""
    mark_ns: int = 0
    """The first step that counts begins after it: until then every task records."""


class CaptureExtent(Struct, frozen=True, kw_only=True):
    """The target and extent of a capture."""

    by: Reason
    worker: str
    """Key of the process."""
    steps: int
    title: str = ""
    anchors: tuple[tuple[int, int], ...] = ()
    """Pairs (kind, name) of the records whose ends are the ends of steps; none: a second of whatever runs."""
    usual: tuple[tuple[int, int], ...] = ()
    """Pairs (kind, name) of other calls that most steps make: a series of any others is an evaluation, which is not
    traced."""
    step_ns: int = 0
    """Mean time of a step; 0 unknown."""
    work: str = ""
    place: str = ""
    """Place, see ``model.session.session.CaptureInfo``."""
    thread: int = 0
    """Thread that makes the steps; 0: any thread."""
    task: str | None = None
    """Fetches of a Session.run: its next runs are traced by the session itself."""
    keep_raw: bool = False
    seconds: float = 0.0
    """Length of a native window, or of an op trace without steps; 0: the usual length."""
    request: str = ""
    """Id of the request."""
    joint: str = ""
    """Id that captures of several tasks at the same time share; "": it is of one task."""
    leads: bool = False
    """It is that of the task that was asked."""
    margin: int = 0
    """Untraced steps before and after the traced ones, for comparison; 0: the usual number."""
    at_once: bool = False
    """It does not wait for untraced steps before it: enough of them have come already."""
    aim: Aim | None = None
    """When it begins; None: at once."""
    when: str = ""
    """Condition that must hold in it, for the account."""
    holds: Callable[[CaptureTaken], str] | None = None
    """Says what happened in it, "" where the condition did not hold: then it is discarded unread. None: it is kept."""
