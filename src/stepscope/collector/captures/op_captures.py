"""Op traces from the collector's side: asks a measured process for one, takes what it wrote, and says what it cost.

One at a time. The process answers in its log; what it wrote lies in ``captures/raw-ID`` of the session until it is
taken from there. An answer that nobody waits for any more, because an earlier sidecar asked, is taken all the same.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from stepscope.collector.captures import capture_files, reason
from stepscope.derive.optrace import capture_cost
from stepscope.errors import CaptureError, FormatError
from stepscope.model.session.session import CaptureInfo
from stepscope.store import layout
from stepscope.wire import commands
from stepscope.wire.env import RAW_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.captures.reason import Reason
    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.collector.recording.owner import Owner
    from stepscope.model.log.events import CaptureTaken

KIND = "ops"
SECONDS = 20.0
"""After which a capture ends with the steps that it has, as soon as it has one."""
PATIENCE = 4.0
"""Times as long as its steps usually take: tracing slows some down, and others compete for the machine."""
BLIND_SECONDS = 1.0
"""How long one lasts where nothing repeats."""
LEVEL = 2
"""host_tracer_level: at 1 there are no ops."""
ANSWER_NS = 300_000_000_000
"""A process that has not answered by then will not."""
SETTLE_NS = 6_000_000_000
"""After an answer the untraced steps that follow are waited for at most so long."""
_COSTS = (
    *("ratio", "low", "high", "traced", "neighbours"),
    *("step_ns", "slower_ns", "export_delay_ns", "cost_ns"),
)
"""Fields that a capture's account and its entry share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be captured, and where."""

    by: Reason
    worker: str
    """Key of the process."""
    steps: int
    title: str = ""
    anchors: tuple[tuple[int, int], ...] = ()
    """(kind, name) of the records whose ends are the ends of steps; none: a second of whatever runs."""
    usual: tuple[tuple[int, int], ...] = ()
    """(kind, name) of other calls that most steps make: a series of any other is an evaluation, which is not traced."""
    step_ns: int = 0
    """The mean step; 0 unknown."""
    work: str = ""
    place: str = ""
    """See ``model.session.session.CaptureInfo``."""
    thread: int = 0
    """That makes the steps; 0: whichever does."""
    task: str | None = None
    """What a Session.run fetches: its next runs are traced by the session itself."""
    keep_raw: bool = False
    seconds: float = 0.0
    """Of a native window, or of an op trace without steps; 0: the usual ones."""
    request: str = ""
    """Id of who asked."""


@dataclass(slots=True, kw_only=True)
class _Flight:
    """A capture that goes on."""

    identity: str
    asked: Asked
    worker: WorkerDrain
    deadline_ns: int
    settled_ns: int = 0


class OpCaptures:
    """The op traces of one recording."""

    def __init__(self, recording: Owner) -> None:
        """Nothing goes on."""
        self._recording = recording
        self._flight: _Flight | None = None

    @property
    def busy(self) -> bool:
        """Whether one goes on."""
        return self._flight is not None

    def begin(self, asked: Asked, now_ns: int) -> str:
        """Ask for a capture; returns its id.

        Raises:
            CaptureError: another one goes on, or the process cannot be asked.
        """
        worker = self._recording.drainer.workers.get(asked.worker)
        if self._flight is not None or worker is None or worker.closed:
            raise CaptureError("another capture is in progress" if self._flight else "the process has ended")
        command = {
            "kind": KIND,
            "steps": asked.steps,
            "seconds": _seconds(asked),
            "level": LEVEL,
            "margin": min(100, max(asked.steps, 5)) if asked.anchors else 0,
            "thread": asked.thread,
            "anchors": [list(pair) for pair in asked.anchors],
            "usual": [list(pair) for pair in asked.usual],
            "task": asked.task,
            "asked_by": asked.by.word,
            "request": asked.request,
            "title": asked.title,
        }
        try:
            identity = commands.send(str(worker.folder / commands.COMMANDS_NAME), command)
        except FileNotFoundError:
            raise CaptureError(
                f"process {worker.pid} accepts no captures: it has not imported TensorFlow, or its agent is gone"
            ) from None
        except (OSError, ValueError) as error:
            raise CaptureError(f"process {worker.pid} accepts no requests: {error}") from error
        self._flight = _Flight(identity=identity, asked=asked, worker=worker, deadline_ns=now_ns + ANSWER_NS)
        return identity

    def enough(self) -> None:
        """End the one that goes on, with what it has; where it cannot be told, it ends when its time is over."""
        if self._flight is not None:
            command: dict[str, object] = {"kind": commands.ENOUGH, "capture": self._flight.identity}
            with contextlib.suppress(OSError):
                commands.send(str(self._flight.worker.folder / commands.COMMANDS_NAME), command)

    def poll(self, now_ns: int, *, final: bool = False) -> CaptureInfo | None:
        """The capture that has come to its end, once; its entry stands in the manifest then.

        ``final``: the job has ended; what is there is taken as it is.
        """
        flight = self._flight = self._flight or self._orphan(now_ns)
        if flight is None:
            return None
        answer = flight.worker.answers.get(flight.identity)
        if answer is None:
            gone = final or flight.worker.closed
            if not gone and now_ns < flight.deadline_ns:
                return None
            why = "the process ended first" if gone else f"no answer in {ANSWER_NS // 10**9} s"
            return self._end(flight, msgspec.structs.replace(_about(flight), outcome="failed", text=why))
        if answer.outcome == "done" and not (final or flight.worker.closed):
            flight.settled_ns = flight.settled_ns or now_ns + _settle_ns(answer, flight.asked.steps)
            if now_ns < flight.settled_ns:
                return None
        return self._end(flight, self._taken(flight, answer))

    def close(self, now_ns: int) -> None:
        """The job has ended: take what is there, delete what was not finished."""
        while self.poll(now_ns, final=True) is not None:
            continue
        for folder in (self._recording.session / layout.CAPTURES).glob(RAW_PREFIX + "*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _orphan(self, now_ns: int) -> _Flight | None:
        known = {capture.id for capture in self._recording.manifest.captures}
        for worker in self._recording.drainer.workers.values():
            for identity in worker.answers.keys() - known:
                said = worker.answers[identity]
                asked = Asked(
                    by=reason.of(said.asked_by),
                    worker=worker.key,
                    steps=said.steps,
                    title=said.title,
                    request=said.request,
                )
                return _Flight(identity=identity, asked=asked, worker=worker, deadline_ns=now_ns)
        return None

    def _end(self, flight: _Flight, info: CaptureInfo) -> CaptureInfo:
        self._flight = None
        self._recording.add_capture(info)
        shutil.rmtree(self._raw(flight), ignore_errors=True)
        return info

    def _raw(self, flight: _Flight) -> Path:
        return self._recording.session / layout.CAPTURES / (RAW_PREFIX + flight.identity)

    def _taken(self, flight: _Flight, answer: CaptureTaken) -> CaptureInfo:
        about = msgspec.structs.replace(
            _about(flight),
            kind=answer.kind,
            way=answer.way,
            outcome=answer.outcome,
            text=answer.text,
            anchors=tuple(answer.anchors),
            at_ns=answer.at,
            recorded_ns=answer.recorded_ns,
            unix_ns=answer.unix_ns,
            steps=answer.steps,
            bytes=answer.bytes,
            export_ns=answer.export_ns,
            cpu_ns=answer.cpu_ns,
        )
        if answer.outcome != "done":
            return about
        cost = capture_cost.measure(flight.worker.recent.table(), answer)
        costs = {name: getattr(cost, name) for name in _COSTS}
        return self._stored(flight, answer, msgspec.structs.replace(about, **costs))

    def _stored(self, flight: _Flight, answer: CaptureTaken, about: CaptureInfo) -> CaptureInfo:
        """Take what the process wrote into the session."""
        captures = self._recording.session / layout.CAPTURES
        files: tuple[str, ...] = ()
        used = time.process_time_ns()
        try:
            files = capture_files.take(self._raw(flight), answer.files, captures, KIND)
            job = self._recording.job
            keep = flight.asked.keep_raw or (job is not None and job.keep_raw)
            files = capture_files.read(self._recording.session, files, about, keep_raw=keep)
        except (CaptureError, FormatError) as error:
            return msgspec.structs.replace(about, outcome="failed", text=str(error), files=files)
        except OSError as error:
            text = f"the trace could not be stored: {error.strerror or error}"
            return msgspec.structs.replace(about, outcome="failed", text=text, files=files)
        used = time.process_time_ns() - used
        return msgspec.structs.replace(about, files=files, read_cpu_ns=used, cost_ns=about.cost_ns + used)


def _about(flight: _Flight) -> CaptureInfo:
    """What is known of a capture before it is answered."""
    asked = flight.asked
    return CaptureInfo(
        id=flight.identity,
        asked_by=asked.by.word,
        request=asked.request,
        worker=flight.worker.key,
        title=asked.title,
        work=asked.work,
        place=asked.place,
        anchors=asked.anchors,
    )


def _seconds(asked: Asked) -> float:
    """After which a capture ends with the steps that it has: what comes between steps may last for minutes."""
    if not asked.anchors:
        return asked.seconds or BLIND_SECONDS
    usual_s = (asked.steps + 1) * asked.step_ns / 1e9
    return min(SECONDS, max(1.0, PATIENCE * usual_s)) if usual_s else SECONDS


def _settle_ns(answer: CaptureTaken, steps: int) -> int:
    """How long until as many untraced steps have followed as were traced."""
    step_ns = answer.recorded_ns // max(1, answer.steps)
    return min(SETTLE_NS, 1_000_000_000 + int(1.5 * steps * step_ns))
