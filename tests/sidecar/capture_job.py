"""A recording and its live view, as far as what decides about captures looks at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from stepscope.collector.captures import reason
from stepscope.collector.captures.asked import CaptureExtent
from stepscope.model.api.status import LiveCapture, LiveTask
from stepscope.model.log.events import CaptureTaken, Name
from stepscope.model.session.session import CaptureInfo, Manifest, WorkerInfo
from stepscope.sidecar.triggers.trigger import Wish
from stepscope.tables.errors import CaptureError
from stepscope.tables.records import RecordTable
from stepscope.wire import commands
from stepscope.wire.kinds import Kind

S = 1_000_000_000
MS = 1_000_000
KEY = "10-1"


@dataclass
class Worker:
    """A measured process."""

    key: str = KEY
    closed: bool = False
    profiled: bool = False
    answers: dict[str, CaptureTaken] = field(default_factory=dict)
    recent: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(counts={}))
    info: WorkerInfo = field(default_factory=lambda: WorkerInfo(key=KEY, pid=10, frameworks={"tensorflow": "2.15.1"}))


STEPS = SimpleNamespace(
    worker=SimpleNamespace(info=Worker().info, records=RecordTable.empty(), all=lambda _cls: []),
    call=Name(id=1, text="train", role="train", call_file="/job/train.py", call_line=41),
    title="Keras fit",
    thread=1,
    kind=Kind.EXECUTION,
    windows=(np.zeros(0, np.int64), np.zeros(0, np.int64)),
    steady_ns=100 * MS,
    steady_count=100,
)
"""Of a millisecond each."""


@dataclass
class Drainer:
    """The measured processes."""

    workers: dict[str, Worker] = field(default_factory=lambda: {KEY: Worker()})


@dataclass
class Captures:
    """Makes captures: the test says what becomes of one."""

    asked: list[CaptureExtent] = field(default_factory=list)
    done: CaptureInfo | None = None
    busy: bool = False
    problem: str = ""
    ended: int = 0
    """How often it was told that there is enough."""
    read_ns: int = 0
    """CPU time of reading files later, taken once."""

    @property
    def recording(self) -> bool:
        """Whether a window is open."""
        return self.busy

    def enough(self) -> None:
        """End with what there is."""
        self.ended += 1

    def begin(self, asked: CaptureExtent, _now_ns: int) -> str:
        """Begin one."""
        if self.problem:
            raise CaptureError(self.problem)
        self.asked.append(asked)
        self.busy = True
        return "id"

    def read_due(self, _now_ns: int) -> int:
        """What was read now."""
        read_ns, self.read_ns = self.read_ns, 0
        return read_ns

    def poll(self, _now_ns: int) -> CaptureInfo | None:
        """The one that is done."""
        done, self.done = self.done, None
        self.busy &= done is None
        return done


@dataclass
class Job:
    """A recording and its live view, as far as ``Capturing`` looks at them."""

    run: Path
    manifest: Manifest = field(
        default_factory=lambda: Manifest(mode="run", budget="1%", origin_monotonic_ns=1, cwd="/job")
    )
    drainer: Drainer = field(default_factory=Drainer)
    sampling: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(spare=False))
    captures: Captures = field(default_factory=Captures)
    native: Captures = field(default_factory=Captures)
    system_calls: Captures = field(default_factory=Captures)
    memory: Captures = field(default_factory=Captures)
    python: Captures = field(default_factory=Captures)
    steps: SimpleNamespace | None = field(default_factory=lambda: STEPS)
    events_per_step: float | None = None
    wanted: tuple[Wish, ...] = ()
    shown: tuple[LiveCapture, ...] = ()
    notes: list[str] = field(default_factory=list)
    refreshed: list[int] = field(default_factory=list)
    analysed_ns: int = 0
    seen_now: SimpleNamespace | None = None
    """Steps that began after the last analysis."""

    def wants(self, *wishes: tuple[str, str]) -> None:
        """From now on these captures, each by its word and kind."""
        self.wanted = tuple(Wish(by=reason.of(word), kind=kind) for word, kind in wishes)

    def note(self, _code: str, text: str) -> None:
        """A diagnostic."""
        self.notes.append(text)

    def refresh(self, now_ns: int, max_age_ns: int) -> None:
        """The analysis, which sees the steps that there are by then."""
        self.refreshed.append(now_ns)
        self.steps = self.steps if max_age_ns else self.seen_now or self.steps

    def session(self) -> None:
        """The recent past, which the tests that look at it stand in for."""

    def calls_of_steps(self) -> frozenset[tuple[str, int, int]]:
        """Those of Keras' train function."""
        return frozenset({(KEY, int(Kind.EXECUTION), 1)})

    def calls_of_tasks(self) -> list[tuple[LiveTask, list[tuple[str, int, int]]]]:
        """Three tasks of sessions."""
        found = []
        for number, name in enumerate(("train", "train_summary", "accuracy"), 1):
            task = LiveTask(kind="Session.run", name=name, pid=10, count=9, per_s=1.0, mean_ns=1, p95_ns=1)
            found.append((task, [(KEY, int(Kind.SESSION_RUN), number)]))
        return found

    def show_captures(self, captures: tuple[LiveCapture, ...], _ratio: float) -> None:
        """What is published."""
        self.shown = captures

    def ask(self, **fields: object) -> str:
        """Leave a request, as ``stepscope trace`` does."""
        return commands.send(str(self.run / commands.REQUESTS_NAME), fields)

    def state(self, request: str) -> LiveCapture:
        """What is said of a request."""
        return next(capture for capture in self.shown if capture.request == request)
