"""Short calls, the governor, the calibration: few records, nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.agent.conftest import Armed, Measured, read_process

from stepscope.agent.core import short_calls
from stepscope.agent.sampling import calibrate, governor
from stepscope.model.log.events import AgentCost, AgentDiagnostic
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

SECOND = 1_000_000_000


def measured(armed: Armed) -> Measured:
    """What the only process has written."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder)


class Sink:
    """The little of a state that ShortCalls uses, as a list of what was written."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []

    def thread(self) -> int:
        """One thread."""
        return 1

    def write(self, *row: int) -> None:
        """Keep it."""
        self.rows.append(row)


CALLS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 20_000), st.booleans()), max_size=60)


@given(CALLS, st.booleans())
def test_counts_add_up(calls: list[tuple[int, int, bool]], ticking: bool) -> None:
    """Whenever it is flushed, calls and time per name are those that were counted, each once."""
    sink = Sink()
    counts = short_calls.ShortCalls(sink.write, sink.thread)
    counts.ticking = ticking
    now = 0
    for name, dur, flush in calls:
        counts.add(name, Kind.SYNC, now, dur)
        now += 100_000_000
        if flush:
            counts.flush()
    counts.flush()
    for name in (1, 2, 3):
        rows = [row for row in sink.rows if row[3] == name]
        assert sum(row[2] for row in rows) == sum(1 for n, _, _ in calls if n == name)
        assert sum(row[1] for row in rows) == sum(dur for n, dur, _ in calls if n == name)
        assert all(row[4] == Kind.COUNTS and row[5] >> 8 == Kind.SYNC for row in rows)
        starts = [row[0] for row in rows]
        assert starts == sorted(starts)


def test_without_a_thread_of_ours_callers_flush(armed: Armed, opened: AgentState) -> None:
    """Where the agent has no thread the calls themselves are folded about once a second."""
    for i in range(25):
        opened.short(1, Kind.SYNC, i * SECOND // 10, 5)
    counts = measured(armed).kinds(Kind.COUNTS)
    assert [(record.arg, record.dur_ns) for record in counts] == [(12, 60), (12, 60)]


def drive(state: AgentState, gov: governor.Governor, rate: int, seconds: int, at: int) -> int:
    """Write records at a rate for some seconds; the moment afterwards."""
    for _ in range(seconds):
        for i in range(rate):
            state.write(at + i, 10, 0, 1 + i % 2, Kind.HOOK, 0, 1)
        state.write(at, 10, 0, 9, Kind.EXECUTION, 0, 1)
        state.write(at, 10, 0, 1, Kind.HOOK, Flag.RAISED, 1)
        at += SECOND
        gov.tick(at)
    return at


def test_governor_thins_above_the_limit_and_accounts_for_all(armed: Armed, opened: AgentState) -> None:
    """Over the limit fast kinds are thinned; records and COUNTS together stand for every call; it ends by itself."""
    gov = governor.Governor(opened)
    at = opened.now()
    at = drive(opened, gov, 1_000, 2, at)
    assert gov.every == 1
    at = drive(opened, gov, 12_000, 3, at)
    assert gov.every > 1
    at = drive(opened, gov, 1_000, 2, at)
    assert gov.every == 1
    opened.records.flush_regularly()
    process = measured(armed)
    hooks = [record for record in process.kinds(Kind.HOOK) if not record.flags & Flag.RAISED]
    counted = sum(record.arg for record in process.kinds(Kind.COUNTS))
    assert len(hooks) + counted == 2 * 1_000 + 3 * 12_000 + 2 * 1_000
    assert sum(1 for record in hooks if record.flags & Flag.THINNED) > 100
    assert counted > 15_000
    assert len(process.kinds(Kind.EXECUTION)) == 7
    assert sum(1 for record in process.kinds(Kind.HOOK) if record.flags & Flag.RAISED) == 7
    assert [line.code for line in process.of(AgentDiagnostic)] == ["DX910"]


def test_calibration_measures_once_after_two_seconds(armed: Armed, opened: AgentState) -> None:
    """One cost line, with times that a computer can have; nothing of it goes to the ring."""
    before = opened.records.written()
    calibration = calibrate.Calibration(opened)
    calibration.tick(opened.lines.started_ns + SECOND)
    assert measured(armed).of(AgentCost) == []
    calibration.tick(opened.lines.started_ns + 3 * SECOND)
    calibration.tick(opened.lines.started_ns + 4 * SECOND)
    (line,) = measured(armed).of(AgentCost)
    assert 10 < line.record_ns < 100_000
    assert 0 <= line.wrapper_ns < 100_000
    assert line.samples > 500
    assert opened.records.written() == before
