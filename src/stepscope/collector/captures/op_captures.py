"""Op traces on the collector's side: requests one from a measured process, takes its files, and computes its cost.

One at a time, or one of each task in a joint capture. The process answers in its log; its files are in
``captures/raw-ID`` of the session until they are taken.
An answer to a request of an earlier sidecar is taken as well, and so is the first look, which a process begins by
itself (``agent.capture.first_look``): from its ``look`` line on it is a capture in progress like any other.

A capture without a request is read after the job's end if the job is young: reading would compete with it.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from stepscope.collector.captures import capture_files, reason
from stepscope.collector.captures.asked import CaptureExtent
from stepscope.derive.kinds import KINDS
from stepscope.derive.optrace import capture_cost
from stepscope.derive.steps.step_work import LOOPS
from stepscope.model.session.session import CaptureInfo
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, FormatError
from stepscope.wire import commands
from stepscope.wire.env import RAW_PREFIX
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.collector.recording.owner import RecorderInterface
    from stepscope.model.log.events import CaptureTaken
    from stepscope.model.log.look import LookTaken

KIND = "ops"
SECONDS = 20.0
"""Seconds after which a capture ends with the steps that it has, as soon as it has one."""
PATIENCE = 4.0
"""Factor over the usual time of its steps: tracing slows some down, and others compete for the machine."""
BLIND_SECONDS = 1.0
"""Length of a capture if nothing repeats."""
LEVEL = 2
"""Value of host_tracer_level: at 1 there are no ops."""
ANSWER_NS = 300_000_000_000
"""Time after which no answer is expected from a process."""
YOUNG_NS = 30_000_000_000
"""Age of a job up to which captures without a request are read after its end."""
SETTLE_NS = 6_000_000_000
"""Maximum time to wait for the untraced steps after an answer."""
SERIES = 6
"""Calls of others without a step between them after which no steps are waited for."""
_STEPS = frozenset(map(int, kinds_with(Trait.STEP)))
_COSTS = (
    *("ratio", "low", "high", "traced", "neighbours"),
    *("step_ns", "slower_ns", "export_delay_ns", "cost_ns"),
)
"""Fields shared by a capture's account and its entry."""


class _Flight(Struct, kw_only=True):
    """A capture in progress."""

    identity: str
    asked: CaptureExtent
    worker: WorkerDrain
    deadline_ns: int
    settled_ns: int = 0
    counts: tuple[int, int] = (0, 0)
    """(calls of the step, calls of what else may be one) when it was answered."""

    def counted(self) -> tuple[int, int]:
        """The same at this moment."""
        calls = self.worker.recent.counts.items()
        mine = sum(count for pair, count in calls if pair in self.asked.anchors)
        return mine, sum(count for (kind, _), count in calls if kind in _STEPS) - mine

    def waits(self, now_ns: int) -> bool:
        """Whether untraced steps may follow: not where other calls have come instead."""
        mine, others = self.counted()
        return now_ns < self.settled_ns and (mine != self.counts[0] or others - self.counts[1] < SERIES)


class OpCaptures:
    """The op traces of one recording."""

    def __init__(self, recording: RecorderInterface) -> None:
        """Begin without a capture."""
        self._recording = recording
        self._flights: list[_Flight] = []
        """Captures in progress: one, or those of a joint capture."""
        self._unread: list[tuple[_Flight, CaptureTaken, CaptureInfo]] = []
        """Finished captures whose files are read later."""

    @property
    def busy(self) -> bool:
        """Whether a capture is in progress."""
        return bool(self._flights)

    def begin(self, asked: CaptureExtent, now_ns: int) -> str:
        """Request a capture and return its id.

        Raises:
            CaptureError: another one is in progress, or the process cannot be asked.
        """
        worker = self._recording.drainer.workers.get(asked.worker)
        joins = asked.joint and all(f.asked.joint == asked.joint and f.worker is not worker for f in self._flights)
        if (self._flights and not joins) or worker is None or worker.closed:
            raise CaptureError("another capture is in progress" if self._flights else "the process has ended")
        command = {
            "kind": KIND,
            "steps": asked.steps,
            "seconds": _seconds(asked),
            "level": LEVEL,
            "margin": (asked.margin or min(100, max(asked.steps, 5))) if asked.anchors else 0,
            "thread": asked.thread,
            "anchors": [list(pair) for pair in asked.anchors],
            "usual": [list(pair) for pair in asked.usual],
            "task": asked.task,
            "asked_by": asked.by.word,
            "request": asked.request,
            "title": asked.title,
            "joint": asked.joint,
        }
        if asked.at_once:
            command["before"] = 0
        if asked.aim is not None:
            command["aim"] = {**asdict(asked.aim), "pairs": [list(pair) for pair in asked.aim.pairs]}
        try:
            identity = commands.send(str(worker.folder / commands.COMMANDS_NAME), command)
        except FileNotFoundError:
            raise CaptureError(
                f"process {worker.pid} accepts no captures: it has not imported TensorFlow, or its agent is gone"
            ) from None
        except (OSError, ValueError) as error:
            raise CaptureError(f"process {worker.pid} accepts no requests: {error}") from error
        self._flights.append(_Flight(identity=identity, asked=asked, worker=worker, deadline_ns=now_ns + ANSWER_NS))
        return identity

    def enough(self) -> None:
        """End the capture in progress with what it has; if the process cannot be asked, it ends when its time is
        over.
        """
        for flight in self._flights:
            command: dict[str, object] = {"kind": commands.ENOUGH, "capture": flight.identity}
            with contextlib.suppress(OSError):
                commands.send(str(flight.worker.folder / commands.COMMANDS_NAME), command)

    def poll(self, now_ns: int, *, final: bool = False) -> CaptureInfo | None:
        """The capture that has just finished, returned once; its entry is then in the manifest.

        ``final``: the job has ended; its files are taken as they are.
        """
        if not self._flights:
            self._flights = [flight for flight in (self._look(now_ns) or self._orphan(now_ns),) if flight is not None]
        for flight in self._flights:
            done = self._polled(flight, now_ns, final=final)
            if done is not None:
                return done
        return None

    def _polled(self, flight: _Flight, now_ns: int, *, final: bool) -> CaptureInfo | None:
        answer = flight.worker.answers.get(flight.identity)
        if answer is None:
            gone = final or flight.worker.closed
            if not gone and now_ns < flight.deadline_ns:
                return None
            why = "the process ended first" if gone else f"no answer in {ANSWER_NS // 10**9} s"
            return self._end(flight, msgspec.structs.replace(_about(flight), outcome="failed", text=why))
        if answer.outcome == "done" and not (final or flight.worker.closed):
            if not flight.settled_ns:
                flight.settled_ns, flight.counts = now_ns + _settle_ns(answer, flight.asked.steps), flight.counted()
            if flight.waits(now_ns):
                return None
        return self._answered(flight, answer, young=not final and self._age_ns(now_ns) < YOUNG_NS)

    def _answered(self, flight: _Flight, answer: CaptureTaken, *, young: bool) -> CaptureInfo:
        """Take a capture; its files are read later if the job is ``young`` and no person asked."""
        taken = self._taken(flight, answer)
        if taken.outcome == "done" and young and not flight.asked.by.person:
            self._flights.remove(flight)
            self._unread.append((flight, answer, taken))
            return taken
        return self._end(flight, self._stored(flight, answer, taken) if taken.outcome == "done" else taken)

    def read_due(self, now_ns: int, *, final: bool = False) -> int:
        """Read the files that could wait, once the job is no longer young; returns the CPU time that this took."""
        if not self._unread or not (final or self._age_ns(now_ns) >= YOUNG_NS):
            return 0
        waiting, self._unread = self._unread, []
        stored = [self._entered(flight, self._stored(flight, answer, taken)) for flight, answer, taken in waiting]
        return sum(info.read_cpu_ns for info in stored)

    def _age_ns(self, now_ns: int) -> int:
        return now_ns - self._recording.manifest.origin_monotonic_ns

    def close(self, now_ns: int) -> None:
        """Take what is there and delete unfinished parts, because the job has ended."""
        self.read_due(now_ns, final=True)
        while self.poll(now_ns, final=True) is not None:
            continue
        for worker in self._recording.drainer.workers.values():
            for look in worker.looks.values():
                if look.problem:
                    self._recording.note("DX118", look.problem)
        for folder in (self._recording.session / layout.CAPTURES).glob(RAW_PREFIX + "*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _known(self) -> set[str]:
        """Ids of the captures that have finished."""
        unread = {flight.identity for flight, _, _ in self._unread}
        return unread | {capture.id for capture in self._recording.manifest.captures}

    def _look(self, now_ns: int) -> _Flight | None:
        """The first look of a process, once it has begun."""
        known = self._known()
        for worker in self._recording.drainer.workers.values():
            for look in worker.looks.values():
                if look.begun and look.id not in known:
                    asked = CaptureExtent(
                        by=reason.FIRST,
                        worker=worker.key,
                        steps=look.steps,
                        title=_title(look),
                        work=look.work,
                        anchors=look.anchors,
                    )
                    deadline_ns = now_ns + ANSWER_NS
                    return _Flight(identity=look.id, asked=asked, worker=worker, deadline_ns=deadline_ns)
        return None

    def _orphan(self, now_ns: int) -> _Flight | None:
        known = self._known()
        for worker in self._recording.drainer.workers.values():
            for identity in worker.answers.keys() - known:
                said = worker.answers[identity]
                asked = CaptureExtent(
                    by=reason.of(said.asked_by),
                    worker=worker.key,
                    steps=said.steps,
                    title=said.title,
                    request=said.request,
                    joint=said.joint,
                )
                return _Flight(identity=identity, asked=asked, worker=worker, deadline_ns=now_ns)
        return None

    def _end(self, flight: _Flight, info: CaptureInfo) -> CaptureInfo:
        self._flights.remove(flight)
        return self._entered(flight, info)

    def _entered(self, flight: _Flight, info: CaptureInfo) -> CaptureInfo:
        """Enter a capture into the manifest and delete what is left of its files."""
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
            ends_ns=tuple(answer.ends),
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
        cost = capture_cost.measure(*flight.worker.recent.observed(), answer)
        costs = {name: getattr(cost, name) for name in _COSTS}
        about = msgspec.structs.replace(about, **costs)
        if flight.asked.holds is not None:
            caught = flight.asked.holds(answer)
            if not caught:
                return msgspec.structs.replace(about, outcome="discarded", text=f"no {flight.asked.when} in it")
            about = msgspec.structs.replace(about, caught=caught)
        return about

    def _stored(self, flight: _Flight, answer: CaptureTaken, about: CaptureInfo) -> CaptureInfo:
        """Move the process's files into the session."""
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


def _title(look: LookTaken) -> str:
    """Description of the steps of a first look."""
    kind = Kind(look.anchors[0][0]) if look.anchors else Kind.STEP
    title = KINDS[kind].step.format(text=look.text, role=LOOPS.get(look.role, look.role))
    return f"{title} {look.text}" if kind == Kind.SESSION_RUN else title


def _about(flight: _Flight) -> CaptureInfo:
    """The facts about a capture before it is answered."""
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
        when=asked.when,
        joint=asked.joint,
        leads=asked.leads,
    )


def _seconds(asked: CaptureExtent) -> float:
    """Seconds after which a capture ends with the steps that it has: pauses between steps may last for minutes."""
    if not asked.anchors:
        return asked.seconds or BLIND_SECONDS
    usual_s = (asked.steps + 1) * asked.step_ns / 1e9
    return min(SECONDS, max(1.0, PATIENCE * usual_s)) if usual_s else SECONDS


def _settle_ns(answer: CaptureTaken, steps: int) -> int:
    """Time until as many untraced steps have followed as were traced."""
    step_ns = answer.recorded_ns // max(1, answer.steps)
    return min(SETTLE_NS, 1_000_000_000 + int(1.5 * steps * step_ns))
