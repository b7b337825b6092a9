"""What the windows of a recording have in common: their course, whose they are, and what they cost its steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from stepscope.derive.optrace import capture_cost
from stepscope.model.log.events import CaptureTaken
from stepscope.model.session.session import CaptureInfo
from stepscope.tables.errors import CaptureError
from stepscope.wire import commands

if TYPE_CHECKING:
    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.recording.owner import RecorderInterface

SETTLE_NS = 2_000_000_000
"""Time after the window whose steps it is compared with."""
NOTICE_NS = 1_000_000_000
"""Time in which a process notices a command: it looks for them twice a second."""
_MARGIN_S = 2.0
"""Margin for sampling Python: a process looks for commands twice a second, and perf takes time to start."""
_COSTS = ("ratio", "low", "high", "traced", "neighbours", "step_ns", "slower_ns", "cost_ns")


class Window(Protocol):
    """A window of a process."""

    def poll(self, now_ns: int) -> bool:
        """Whether it is over."""

    def stop(self) -> None:
        """End it now."""

    def close(self) -> None:
        """Release everything."""


W = TypeVar("W", bound=Window)


class Flight(Struct, Generic[W], kw_only=True):
    """A window in progress."""

    identity: str
    asked: CaptureExtent
    number: int
    """Among the windows of its kind, from 1."""
    window: W
    settled_ns: int = 0
    """Time at which the steps after it have been made; 0: it is open."""


class WindowCaptures(ABC, Generic[W]):
    """The windows of one kind of one recording, one at a time."""

    kind: str
    way: str

    def __init__(self, recording: RecorderInterface) -> None:
        """Begin without a window."""
        self._recording = recording
        self._flight: Flight[W] | None = None

    @property
    def busy(self) -> bool:
        """Whether a window is in progress."""
        return self._flight is not None

    @property
    def recording(self) -> bool:
        """Whether a window is still open."""
        return self._flight is not None and not self._flight.settled_ns

    def poll(self, now_ns: int, *, final: bool = False) -> CaptureInfo | None:
        """The window that has just finished, returned once; its entry is then in the manifest."""
        flight = self._flight
        if flight is None:
            return None
        if final:
            flight.window.stop()
        elif not flight.window.poll(now_ns):
            return None
        flight.settled_ns = flight.settled_ns or now_ns + SETTLE_NS
        if not final and now_ns < flight.settled_ns:
            return None
        self._flight = None
        try:
            info = self._taken(flight)
        finally:
            flight.window.close()
            self._released(flight)
        self._recording.add_capture(info)
        return info

    def close(self, now_ns: int) -> None:
        """Take what is there, because the job has ended."""
        self.poll(now_ns, final=True)

    @abstractmethod
    def _taken(self, flight: Flight[W]) -> CaptureInfo:
        """Store what a window holds, and compare its steps with those around it."""

    def _released(self, flight: Flight[W]) -> None:
        """Delete what a window has left."""

    def _begun(self, asked: CaptureExtent, window: W, identity: str = "") -> str:
        number = 1 + sum(capture.kind == self.kind for capture in self._recording.manifest.captures)
        self._flight = Flight(identity=identity or commands.new_id(), asked=asked, number=number, window=window)
        return self._flight.identity

    def _failed(self, flight: Flight[W]) -> CaptureInfo:
        """The entry of a window of which nothing is stored yet."""
        return CaptureInfo(
            id=flight.identity,
            kind=self.kind,
            way=self.way,
            outcome="failed",
            asked_by=flight.asked.by.word,
            request=flight.asked.request,
            worker=flight.asked.worker,
            title=flight.asked.title,
        )


def pid_of(recording: RecorderInterface, worker: str) -> int:
    """The process that a worker's key stands for, or the job's.

    Raises:
        CaptureError: it has ended.
    """
    found = recording.drainer.workers.get(worker)
    if found is not None and not found.closed:
        return found.pid
    if worker or recording.job is None:
        raise CaptureError("the process has ended")
    return recording.job.pid


def keep_awake(recording: RecorderInterface, worker: str, seconds: float, *, hz: int = 0) -> None:
    """Ask a process not to rest while it is measured, so that its steps are seen.

    Args:
        recording: the recording.
        worker: the process's key.
        seconds: how long, from its start, without the time until the process notices.
        hz: rate at which it is to sample its Python stacks, which are spliced in; 0: the usual one.
    """
    command: dict[str, object] = {"kind": commands.STACKS, "hz": hz, "seconds": seconds + _MARGIN_S}
    lost = "Python stacks could not be sampled more often during a window"
    tell(recording, worker, command, lost, needed=hz > 0)


def tell(
    recording: RecorderInterface, worker: str, command: dict[str, object], lost: str, *, needed: bool = True
) -> None:
    """Ask a process for something during a window; what is ``lost`` if it cannot be asked becomes a note.

    Args:
        recording: the recording.
        worker: the process's key.
        command: what is asked for.
        lost: the note's words.
        needed: whether something is lost if the process has no thread of the agent (PyTorch, JAX).
    """
    found = recording.drainer.workers.get(worker)
    if found is None or found.closed:
        return
    folder = found.folder / commands.COMMANDS_NAME
    if not folder.is_dir():
        if needed:
            recording.note("DX147", f"{lost}: process {found.pid} has no thread of the agent")
        return
    try:
        commands.send(str(folder), command)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        recording.note("DX147", f"{lost}: {why}")


def with_cost(recording: RecorderInterface, info: CaptureInfo, asked: CaptureExtent) -> CaptureInfo:
    """The window, with what it cost by the steps within and around it."""
    worker = recording.drainer.workers.get(asked.worker)
    if worker is None or not asked.anchors:
        return info
    window = CaptureTaken(
        at=info.at_ns,
        id=info.id,
        kind=info.kind,
        way=info.way,
        recorded_ns=info.recorded_ns,
        cpu_ns=info.cpu_ns,
        anchors=[*asked.anchors],
        thread=asked.thread,
    )
    cost = capture_cost.measure(*worker.recent.observed(), window)
    costs = {name: getattr(cost, name) for name in _COSTS}
    return msgspec.structs.replace(info, steps=cost.traced, **costs)
