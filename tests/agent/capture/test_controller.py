"""Captures inside of the job, without a framework: what may be asked, how steps are counted and marked."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar, cast

import pytest
from tests.agent.capture.made import GOOD

from stepscope.agent.capture import profiler, runs
from stepscope.agent.capture.controller import Captures
from stepscope.agent.capture.orders import MAX_STEPS, PROFILER, RUN_METADATA, CaptureCommand
from stepscope.agent.capture.watch import StepWatch
from stepscope.wire.kinds import STEP_MARKER, Flag, Kind
from stepscope.wire.ring import HEADER_BYTES, RECORD, RECORD_BYTES, make_write, tapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.capture.host import CaptureHost
    from stepscope.agent.core.lines import AgentLog

STEP = (0, 1, 1, 7, int(Kind.EXECUTION), 0, 1)
"""A record of the anchor (2, 7) on thread 1."""


def test_an_order_is_read() -> None:
    """What the collector sends is understood; a task makes it one of runs."""
    order = CaptureCommand(GOOD)
    assert (order.steps, order.anchors, order.way) == (10, frozenset({(2, 7)}), PROFILER)
    assert CaptureCommand({**GOOD, "task": "train"}).way == RUN_METADATA


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("steps", MAX_STEPS + 1),
        ("steps", True),
        ("steps", "10"),
        ("steps", None),
        ("seconds", float("nan")),
        ("seconds", 1e9),
        ("level", 0),
        ("margin", -1),
        ("thread", 1 << 40),
        ("anchors", None),
        ("anchors", [[1]]),
        ("anchors", [[1, "2"]]),
        ("anchors", [[1, 2]] * 1000),
        ("usual", [[1, "2"]]),
        ("pairs", {"aim": {"pairs": [[1]], "flag": 0, "longer_ns": 0, "skip": 0, "seconds": 1}}),
        ("skip", {"aim": {"pairs": [], "flag": 0, "longer_ns": 0, "skip": -1, "seconds": 1}}),
        ("seconds", {"aim": {"pairs": [], "flag": 0, "longer_ns": 0, "skip": 0, "seconds": 1e9}}),
        ("task", 5),
        ("task", "x" * 5000),
    ],
)
def test_an_order_out_of_bounds_is_refused(name: str, value: object) -> None:
    """Each field has its bounds, and the message names it."""
    fields = value if isinstance(value, dict) else {name: value}
    with pytest.raises(ValueError, match=name):
        CaptureCommand({**GOOD, **fields})


class Marker:
    """Stands in for a TraceMe: notes its order of events."""

    seen: ClassVar[list[str]] = []

    def __init__(self, name: str, **stats: int) -> None:
        self.number = stats["step_num"]
        assert (name, stats["_r"]) == (STEP_MARKER, 1)
        self.seen.append(f"begin {self.number}")

    def Stop(self) -> None:
        """End it."""
        self.seen.append(f"end {self.number}")


def test_steps_are_marked_from_end_to_end() -> None:
    """The first marker begins where a call ends; so many whole steps are marked and no more."""
    Marker.seen = []
    watch = StepWatch(frozenset({(2, 7)}))
    watch.mark(Marker, 2)
    for _ in range(5):
        watch.record(*STEP)
    assert Marker.seen == ["begin 0", "end 0", "begin 1", "end 1"]
    assert (watch.marked, watch.ends) == (2, 5)


def test_other_records_are_no_steps() -> None:
    """Another name, another kind, another thread and the end of an iterator do not count."""
    watch = StepWatch(frozenset({(2, 7), (8, 7)}))
    watch.record(*STEP)
    watch.record(0, 1, 1, 8, int(Kind.EXECUTION), 0, 1)
    watch.record(0, 1, 1, 7, int(Kind.FUNCTION), 0, 1)
    watch.record(0, 1, 1, 7, int(Kind.EXECUTION), 0, 2)
    watch.record(0, 1, 1, 7, int(Kind.NEXT), int(Flag.END), 1)
    assert watch.ends == 1


OTHER = (0, 1, 1, 8, int(Kind.EXECUTION), 0, 1)
"""Another call of the same thread."""


def test_a_series_of_other_calls_ends_the_marking() -> None:
    """The step that an evaluation came into is no step: its marker is neither ended nor counted."""
    Marker.seen = []
    watch = StepWatch(frozenset({(2, 7)}))
    watch.mark(Marker, 9)
    for record in (STEP, STEP, OTHER, STEP, OTHER, OTHER, STEP, STEP):
        watch.record(*record)
    assert Marker.seen == ["begin 0", "end 0", "begin 1", "end 1", "begin 2"]
    assert (watch.marked, watch.ends, watch.left) == (2, 5, True)
    watch.mark(Marker, 9)
    assert not watch.left


@pytest.mark.parametrize(
    ("usual", "record"),
    [
        (frozenset({(2, 8)}), OTHER),
        (frozenset(), (*OTHER[:4], int(Kind.NEXT), *OTHER[5:])),
        (frozenset(), (*OTHER[:5], int(Flag.NESTED), 1)),
        (frozenset(), (*OTHER[:6], 2)),
    ],
)
def test_what_steps_make_themselves_is_no_evaluation(
    usual: frozenset[tuple[int, int]], record: tuple[int, ...]
) -> None:
    """Calls that most steps make, what is no call, calls inside of others and those of other threads."""
    watch = StepWatch(frozenset({(2, 7)}), 1, usual)
    watch.mark(Marker, 9)
    watch.record(*STEP)
    for _ in range(5):
        watch.record(*record)
    assert not watch.left


class Recorder:
    """Looks like TensorFlow's ProfilerSession; ``script`` runs when recording begins."""

    def __init__(self, begun: list[str]) -> None:
        self.begun = begun

    def start(self, folder: str, _options: dict[str, int]) -> None:
        """Begin."""
        self.folder = folder
        self.begun.append("start")

    def export_to_tb(self) -> None:
        """Write."""
        self.begun.append("export")
        Path(self.folder, "a.xplane.pb").write_bytes(b"\n")


def test_a_trace_that_an_evaluation_came_into_at_once_begins_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing of it is written; the next one begins where the step is called again, and ends where it evaluates."""
    monkeypatch.setattr(profiler, "MIN_FREE_BYTES", 0)
    monkeypatch.setitem(
        sys.modules, "tensorflow.python.profiler.internal._pywrap_traceme", SimpleNamespace(TraceMe=Marker)
    )
    begun: list[str] = []
    module = SimpleNamespace(_pywrap_profiler=SimpleNamespace(ProfilerSession=lambda: Recorder(begun)), _profiler=None)
    tracing = profiler.Profiler(cast("AgentLog", SimpleNamespace()), module)
    watch = StepWatch(frozenset({(2, 7)}), 1)
    rounds = iter(([STEP], [STEP, OTHER, OTHER], [STEP], [STEP, STEP, STEP, OTHER, OTHER]))
    waited = watch.until

    def until(done: Callable[[], bool], timeout_s: float) -> None:
        for record in next(rounds):
            watch.record(*record)
        assert done()
        waited(done, timeout_s)

    monkeypatch.setattr(watch, "until", until)
    line = tracing.trace(CaptureCommand({**GOOD, "steps": 5}), watch, str(tmp_path))
    assert begun == ["start", "start", "export"]
    assert (line["outcome"], line["steps"]) == ("done", 2)
    assert line["text"] == "an evaluation began after 2 of 5 steps"


@pytest.mark.parametrize(
    ("resident", "outcome", "text"),
    [(900 << 20, "done", None), (1_300 << 20, "failed", "the job grew by 256 MB while it was traced")],
)
def test_a_step_may_take_the_memory_that_steps_have_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, resident: int, outcome: str, text: str | None
) -> None:
    """Between steps 400 MB are resident, within one 900: that is the job's. More than it ever had is the trace's."""
    monkeypatch.setattr(profiler, "MIN_FREE_BYTES", 0)
    monkeypatch.setitem(
        sys.modules, "tensorflow.python.profiler.internal._pywrap_traceme", SimpleNamespace(TraceMe=Marker)
    )
    monkeypatch.setattr(profiler, "_peak", lambda: 1_000 << 20)
    sizes = iter([400 << 20])
    monkeypatch.setattr(profiler, "_resident", lambda: next(sizes, resident))
    begun: list[str] = []
    module = SimpleNamespace(_pywrap_profiler=SimpleNamespace(ProfilerSession=lambda: Recorder(begun)), _profiler=None)
    tracing = profiler.Profiler(cast("AgentLog", SimpleNamespace()), module)
    watch = StepWatch(frozenset({(2, 7)}), 1)
    waited = watch.until

    def until(done: Callable[[], bool], timeout_s: float) -> None:
        watch.record(*STEP)
        if not done():  # in the middle of the first whole step
            watch.record(*STEP)
            watch.record(*STEP)
        waited(done, timeout_s)

    monkeypatch.setattr(watch, "until", until)
    line = tracing.trace(CaptureCommand({**GOOD, "steps": 1, "margin": 0}), watch, str(tmp_path))
    assert (line["outcome"], line.get("text")) == (outcome, text)
    assert ("export" in begun) is (outcome == "done")


def test_no_trace_without_a_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where no step ends nothing is recorded: what runs is something else."""
    monkeypatch.setattr(profiler, "MIN_FREE_BYTES", 0)
    begun: list[str] = []
    module = SimpleNamespace(_pywrap_profiler=SimpleNamespace(ProfilerSession=lambda: Recorder(begun)), _profiler=None)
    tracing = profiler.Profiler(cast("AgentLog", SimpleNamespace()), module)
    watch = StepWatch(frozenset({(2, 7)}), 1)
    monkeypatch.setattr(watch, "until", lambda *_: None)
    assert tracing.trace(CaptureCommand(GOOD), watch, str(tmp_path)) == {"outcome": "failed", "text": profiler.NO_STEPS}
    assert begun == []


def test_waiting_ends_with_the_steps_or_is_stopped() -> None:
    """A waiting thread goes on at the last step, and at once when somebody stops it."""
    watch = StepWatch(frozenset({(2, 7)}))
    results: list[bool] = []
    waiting = threading.Thread(target=lambda: results.append(watch.wait(3, 60.0)))
    waiting.start()
    for _ in range(3):
        watch.record(*STEP)
    waiting.join(60)
    stopped = threading.Thread(target=lambda: results.append(watch.wait(3, 60.0)))
    stopped.start()
    watch.stop("why")
    stopped.join(60)
    assert results == [True, False]
    assert watch.stopped == "why"
    assert not watch.wait(1, 60.0)


def test_nobody_is_woken_for_a_step_that_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that wakes contends with the steps: it does at the goal, and neither before there is one nor after."""
    watch = StepWatch(frozenset({(2, 7)}))
    woken: list[int] = []
    monkeypatch.setattr(watch, "wake", lambda: woken.append(watch.ends))
    watch.record(*STEP)

    def steps() -> bool:
        watch.record(*STEP)
        return True

    assert watch.wait(1, 60.0, steps)
    assert woken == [2]
    watch.record(*STEP)
    assert (watch.ends, woken) == (3, [2])


class Options:
    """Looks like TensorFlow's RunOptions."""

    NO_TRACE, FULL_TRACE = 0, 3

    def __init__(self) -> None:
        self.trace_level = self.NO_TRACE


class Metadata:
    """Looks like TensorFlow's RunMetadata."""

    def SerializeToString(self) -> bytes:
        """Of a run."""
        return b"ran"


def test_traced_runs_are_left_alone_until_the_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exactly the runs that were asked for have a trace, and who waits for them is woken once, by the last."""
    monkeypatch.setitem(sys.modules, runs.CONFIG, SimpleNamespace(RunOptions=Options, RunMetadata=Metadata))
    state = SimpleNamespace(captures=SimpleNamespace(profiled=bool), guard=lambda _: nullcontext())
    tracing = runs.SessionRuns(cast("CaptureHost", state))
    watch = StepWatch(frozenset())
    woken: list[int] = []
    levels: list[int] = []

    def run(_session: None, _fetches: str, _feeds: None = None, options: Options | None = None, *_: object) -> int:
        levels.append(options.trace_level if options else Options.NO_TRACE)
        return len(levels)

    wake = watch.wake

    def woke() -> None:
        woken.append(len(levels))
        wake()

    monkeypatch.setattr(watch, "wake", woke)
    told: list[dict[str, object]] = []
    order = CaptureCommand({**GOOD, "task": "train", "steps": 3})
    waits = threading.Thread(target=lambda: told.append(tracing.trace(order, watch, str(tmp_path))))
    waits.start()
    deadline = time.monotonic() + 60
    while tracing.task is None and time.monotonic() < deadline:
        time.sleep(0.001)
    results = [tracing.claim(run, text)(None, text) for text in ("train", "loss", "train", "train", "train")]
    waits.join(60)
    assert results == [1, 2, 3, 4, 5]
    assert levels == [3, 0, 3, 3, 0]
    assert woken == [4]
    assert (told[0]["outcome"], told[0]["steps"], told[0]["bytes"]) == ("done", 3, 9)


def test_a_capture_ends_with_what_it_has_when_its_asker_has_enough() -> None:
    """Another one, of an earlier command, is none of it."""
    captures = Captures(cast("CaptureHost", SimpleNamespace()))
    watch = captures._watch = StepWatch(frozenset())
    captures._identity = "b"
    captures.enough({"capture": "a"})
    assert not watch.enough
    captures.enough({"capture": "b"})
    assert (watch.enough, watch.stopped) == (True, "")
    assert not watch.wait(1, 60.0, lambda: watch.enough)
    captures._watch = None
    captures.enough({"capture": "b"})


def test_both_clocks_are_read_where_nothing_comes_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may have its turn between two looks, for longer than an op lasts: the closest pair counts."""
    away = iter((20, 5, 7, 0, 9))
    now = [1_000]

    def monotonic_ns() -> int:
        now[0] += 1
        return now[0]

    def time_ns() -> int:
        said = now[0] + 500_000
        now[0] += next(away) * 1_000_000
        return said

    monkeypatch.setattr(profiler, "time", SimpleNamespace(monotonic_ns=monotonic_ns, time_ns=time_ns))
    at, unix_ns = profiler.moment()
    assert unix_ns - at == 500_000
    assert next(away, None) is None


def test_enough_is_enough() -> None:
    """Whoever waits may say that it suffices."""
    watch = StepWatch(frozenset({(2, 7)}))
    assert not watch.wait(1, 60.0, lambda: True)


def test_a_tap_sees_every_record_and_may_fail() -> None:
    """The fields reach the tap after the record is written; what it raises harms neither record nor caller."""
    buffer = bytearray(HEADER_BYTES + 4 * RECORD_BYTES)
    index = iter(range(10))
    write, rebind = make_write(buffer, 4, index.__next__)
    seen: list[tuple[int, ...]] = []
    place = (buffer, 4, index.__next__, None)
    rebind(*place, tapped(lambda *values: seen.append(values)))
    write(1, 2, 3, 4, 5, 6, 7)
    assert seen == [(1, 2, 3, 4, 5, 6, 7)]

    def fails(*values: int) -> None:
        raise RuntimeError(values)

    rebind(*place, tapped(fails))
    write(8, 2, 3, 4, 5, 6, 7)
    rebind(*place, tapped(None))
    write(9, 2, 3, 4, 5, 6, 7)
    starts = [RECORD.unpack_from(buffer, HEADER_BYTES + i * RECORD_BYTES)[0] for i in range(3)]
    assert starts == [1, 8, 9]
