"""Duty cycle: hot wrappers are detached when they cost too much, come back, and calls meanwhile are counted."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.agent import duty_cycle
from stepscope.agent.probes.common import OTHER, WrappedModels
from stepscope.collector.agent_files.ring import RingReader
from stepscope.wire.call_cost import wrapped_ns
from stepscope.wire.kinds import Kind

from .conftest import Armed, Measured, read_process

if TYPE_CHECKING:
    from stepscope.agent.state import AgentState

START = 1_000_000_000


def measured(armed: Armed) -> Measured:
    """What the only process has written."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder)


class Loop:
    """Something whose methods are patched."""

    def hook(self) -> str:
        """A hot hook, without a stand-in."""
        return "own"

    def call(self) -> str:
        """What repeats, with one that counts."""
        return "own"

    def save(self) -> str:
        """Nothing hot."""
        return "own"


@pytest.fixture
def loop(opened: AgentState) -> type[Loop]:
    """A class of its own for each test, patched."""

    class Patched(Loop):
        hook = Loop.hook
        call = Loop.call
        save = Loop.save

    def light(_: Any) -> str:
        return "light"

    opened.patch(Patched, "hook", lambda _: "wrapped", (int(Kind.HOOK), None))
    opened.patch(
        Patched, "call", lambda _: "wrapped", (int(Kind.FUNCTION), opened.duty_cycle.light(Kind.FUNCTION, light))
    )
    opened.patch(Patched, "save", lambda _: "wrapped")
    return Patched


def calls(loop: type[Loop]) -> tuple[str, str, str]:
    """What its three methods come down to."""
    thing = loop()
    return thing.hook(), thing.call(), thing.save()


def busy(state: AgentState, records: int, kind: Kind = Kind.FUNCTION) -> None:
    """Write so many records."""
    for _ in range(records):
        state.write(1, 1, 0, 1, int(kind), 0, 1)


def second_gap(state: AgentState) -> None:
    """Into a gap that may be long: the first is no longer than what went before it."""
    state.duty_cycle.tick(START)
    busy(state, 1000)
    state.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    state.duty_cycle.end(state.now())
    busy(state, 1000)
    state.duty_cycle.tick(state.now() + duty_cycle.FIRST_WINDOW_NS)


def test_a_slow_job_has_no_gaps(opened: AgentState, loop: type[Loop]) -> None:
    """Few calls in a long window are within the budget: all wrappers stay."""
    opened.duty_cycle.tick(START)
    busy(opened, duty_cycle.MIN_CALLS)
    opened.duty_cycle.tick(START + 100 * duty_cycle.WINDOW_NS)
    assert not opened.duty_cycle.detached
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")


def test_what_cannot_be_detached_is_no_reason_for_a_gap(opened: AgentState, loop: type[Loop]) -> None:
    """A generator that is called for every element makes records that a gap would not save."""
    opened.duty_cycle.tick(START)
    busy(opened, 2000, Kind.PYFUNC)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")


def test_calls_are_counted_though_other_records_are_newer(opened: AgentState, armed: Armed) -> None:
    """A backward pass in which garbage is collected a hundred times does not hide which calls repeat."""
    functions = opened.duty_cycle.light(Kind.FUNCTION, len)
    opened.duty_cycle.tick(START)
    busy(opened, duty_cycle.MIN_CALLS)
    for _ in range(20_000):
        opened.short(1, int(Kind.SYNC), 1, 5)
    busy(opened, duty_cycle.LOOKED_AT, Kind.GC)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert opened.duty_cycle.detached
    for _ in range(7):
        assert functions("abc") == 3
    opened.duty_cycle.tick(opened.now() + duty_cycle.MAX_GAP_NS)
    told = {r.flags >> 8: r.arg for r in measured(armed).kinds(Kind.REST)}
    assert told == {int(Kind.EXECUTION): 0, int(Kind.FUNCTION): 7}


@pytest.mark.parametrize(("beside", "counted"), [(None, Kind.SYNC), (Kind.FUNCTION, Kind.FUNCTION)])
def test_values_read_are_counted_where_nothing_else_is(
    opened: AgentState, armed: Armed, beside: Kind | None, counted: Kind
) -> None:
    """In a gap reads count the turns of an eager loop, but not those of a loop that calls a function ten times less."""
    reads = opened.duty_cycle.light(Kind.SYNC, len)
    functions = opened.duty_cycle.light(Kind.FUNCTION, len)
    opened.duty_cycle.tick(START)
    for _ in range(100):
        busy(opened, 10, Kind.SYNC)
        if beside is not None:
            busy(opened, 1, beside)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    for _ in range(7):
        assert (reads("abc"), functions("abc")) == (3, 3)
    opened.duty_cycle.tick(opened.now() + duty_cycle.MAX_GAP_NS)
    told = {r.flags >> 8: r.arg for r in measured(armed).kinds(Kind.REST)}
    assert told == {int(Kind.EXECUTION): 0, int(counted): 7}


def test_a_fast_job_is_detached_and_reattached(opened: AgentState, loop: type[Loop], armed: Armed) -> None:
    """Many calls in a short window: hot wrappers go aside, the light one counts, the record says how many; then a new
    window begins."""
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert opened.duty_cycle.detached
    for _ in range(7):
        assert calls(loop) == ("own", "light", "wrapped")
    opened.duty_cycle.tick(opened.now() + duty_cycle.MAX_GAP_NS)
    assert not opened.duty_cycle.detached
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")
    told = {r.flags >> 8: r.arg for r in measured(armed).kinds(Kind.REST)}
    assert told == {int(Kind.EXECUTION): 0, int(Kind.FUNCTION): 7}


def test_what_is_counted_outlives_the_process(opened: AgentState, loop: type[Loop], armed: Armed) -> None:
    """Before it is told, the count stands in the ring: a reader of a dead process makes the record of it, once."""
    second_gap(opened)
    for _ in range(7):
        calls(loop)
    opened.duty_cycle.tick(opened.now() + duty_cycle.REPORT_NS)
    for _ in range(5):
        calls(loop)
    opened.duty_cycle.note()
    (folder,) = (armed.folder / "procs").iterdir()
    reader = RingReader(str(folder / "ring"))
    told = reader.drain(opened.now(), final=True).records
    assert int(told["arg"][told["kind"] == Kind.REST].sum()) == 7
    batch = reader.take_untold(opened.now() + 2 * duty_cycle.REPORT_NS)
    assert {int(r["flags"]) >> 8: int(r["arg"]) for r in batch.records} == {Kind.EXECUTION: 0, Kind.FUNCTION: 5}
    assert list(batch.indexes) == [reader.cursor - 2, reader.cursor - 1]
    assert len(reader.take_untold(opened.now()).records) == 0
    opened.duty_cycle.end(opened.now())
    assert len(RingReader(str(folder / "ring")).take_untold(opened.now()).records) == 0


@pytest.mark.parametrize(("fails", "counted"), [(False, 3), (True, 2)])
def test_a_call_that_ended_the_program_is_not_counted(
    opened: AgentState, loop: type[Loop], armed: Armed, monkeypatch: pytest.MonkeyPatch, fails: bool, counted: int
) -> None:
    def step(number: int) -> None:
        if number == 2 and fails:
            raise KeyboardInterrupt

    counts = opened.duty_cycle.light(Kind.FUNCTION, step)
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    try:
        list(map(counts, range(3)))
    except KeyboardInterrupt as error:
        monkeypatch.setattr("sys.last_traceback", error.__traceback__, raising=False)
    opened.finish()
    assert sum(record.arg for record in measured(armed).kinds(Kind.REST)) == counted


def test_a_step_function_counts_in_a_gap_and_after_its_model_went(opened: AgentState) -> None:
    """What hangs on a model is exchanged for what counts, in C; its count stays when the model goes."""

    class Model:
        pass

    def step(iterator: object) -> object:
        return iterator

    def wrapper(iterator: object) -> object:
        return iterator

    model, wrapped = Model(), WrappedModels()
    counts = opened.duty_cycle.light(Kind.EXECUTION, step)
    setattr(wrapper, OTHER, counts)
    setattr(counts, OTHER, wrapper)
    vars(model)["train_function"] = wrapper
    wrapped.add(model, "train_function")
    opened.duty_cycle.swaps.append(wrapped.swap)
    opened.duty_cycle.tick(START)
    busy(opened, 1000, Kind.EXECUTION)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert vars(model)["train_function"] is counts
    assert [vars(model)["train_function"](number) for number in range(3)] == [0, 1, 2]
    opened.duty_cycle.note()
    delattr(wrapper, OTHER)
    del model, counts
    gc.collect()
    assert opened.duty_cycle.uncommitted[duty_cycle.SLOTS[Kind.EXECUTION]] == 3
    opened.duty_cycle.end(opened.now())
    opened.duty_cycle.tick(opened.now() + duty_cycle.FIRST_WINDOW_NS)
    other = Model()
    vars(other)["train_function"] = "the user's own"
    wrapped.add(other, "train_function")
    wrapped.swap(detached=True)
    assert vars(other)["train_function"] == "the user's own"


def test_models_without_end_leave_nothing(opened: AgentState) -> None:
    """What counts goes with its model, also in a job without gaps."""
    for _ in range(5 * duty_cycle.MANY):
        opened.duty_cycle.light(Kind.EXECUTION, lambda: None)
    gc.collect()
    kept = opened.duty_cycle.light(Kind.EXECUTION, lambda: None)
    assert len(opened.duty_cycle._counters[Kind.EXECUTION]) <= duty_cycle.MANY + 1
    assert kept() is None


def test_the_budget_follows_what_a_call_costs_here(opened: AgentState, loop: type[Loop]) -> None:
    """The same calls make a gap, but where the calibration says that a call is cheap."""
    count = 3 * duty_cycle.MIN_CALLS
    costs = [wrapped_ns(loop)[2] for loop in (1, 100_000)]
    spare = duty_cycle.BUDGET_RATIO - duty_cycle.THREAD_RATIO
    window = int(count * (costs[0] * costs[1]) ** 0.5 / spare)
    opened.duty_cycle.calibrated(1)
    opened.duty_cycle.tick(START)
    busy(opened, count)
    opened.duty_cycle.tick(START + window)
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")
    opened.duty_cycle.calibrated(100_000)
    busy(opened, count)
    opened.duty_cycle.tick(START + 2 * window)
    assert opened.duty_cycle.detached


def test_a_window_lasts_until_enough_was_seen(opened: AgentState, loop: type[Loop]) -> None:
    """What needs more steps than the window has holds it open, but not for long."""
    seen: list[bool] = []
    opened.duty_cycle.enough.append(lambda: bool(seen))
    opened.duty_cycle.tick(START)
    busy(opened, 10_000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert not opened.duty_cycle.detached
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")
    seen.append(True)
    opened.duty_cycle.tick(START + 2 * duty_cycle.FIRST_WINDOW_NS)
    assert opened.duty_cycle.detached
    opened.duty_cycle.end(opened.now())
    seen.clear()
    now = opened.now()
    opened.duty_cycle.tick(now)
    busy(opened, 10_000)
    opened.duty_cycle.tick(now + duty_cycle.LONG_WINDOW_NS)
    assert opened.duty_cycle.detached


def test_a_window_holds_a_whole_step_of_a_job_that_runs_op_by_op(opened: AgentState, loop: type[Loop]) -> None:
    """Each of its steps reads many values; a window lasts until its updates have come thrice, but not for long."""
    opened.duty_cycle.tick(START)
    for updates in (1, 2, 3):
        busy(opened, 2_000, Kind.SYNC)
        busy(opened, 1, Kind.GRADIENT)
        opened.duty_cycle.tick(START + updates * duty_cycle.FIRST_WINDOW_NS)
        assert opened.duty_cycle.detached == (updates == duty_cycle.WHOLE)
    opened.duty_cycle.end(opened.now())
    now = opened.now()
    opened.duty_cycle.tick(now)
    busy(opened, 500, Kind.SYNC)
    opened.duty_cycle.tick(now + duty_cycle.FIRST_WINDOW_NS)
    assert not opened.duty_cycle.detached
    busy(opened, 40_000, Kind.SYNC)
    opened.duty_cycle.tick(now + duty_cycle.LONG_WINDOW_NS)
    assert opened.duty_cycle.detached
    assert calls(loop)[0] == "own"


def test_nobody_counts_functions_inside_of_keras_steps(opened: AgentState, loop: type[Loop]) -> None:
    """Where Keras' step function is what repeats, it counts itself and the function inside is as it was."""
    opened.duty_cycle.tick(START)
    busy(opened, 1000, Kind.EXECUTION)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert calls(loop) == ("own", "own", "wrapped")


def test_what_is_patched_during_a_gap_waits_for_its_end(opened: AgentState, loop: type[Loop]) -> None:
    """A class that is met while wrappers are aside gets its wrapper when they come back, and only one."""
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    opened.patch(loop, "hook", lambda _: "second", (int(Kind.HOOK), None))

    class Late(Loop):
        hook = Loop.hook

    opened.patch(Late, "hook", lambda _: "late", (int(Kind.HOOK), None))
    assert (loop().hook(), Late().hook()) == ("own", "own")
    opened.duty_cycle.end(opened.now())
    assert (loop().hook(), Late().hook()) == ("wrapped", "late")
    opened.uninstall()
    assert (loop().hook(), Late().hook(), calls(loop)) == ("own", "own", ("own", "own", "own"))


def test_uninstalling_in_a_gap_puts_everything_back(opened: AgentState, loop: type[Loop]) -> None:
    """The agent may take itself out at any time."""
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    opened.uninstall()
    assert calls(loop) == ("own", "own", "own")


def test_what_others_put_over_it_is_left_alone(opened: AgentState, loop: type[Loop]) -> None:
    """A user who patches during a gap keeps the patch."""
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    loop.hook = lambda _: "user"  # type: ignore[method-assign, assignment]
    opened.duty_cycle.end(opened.now())
    assert calls(loop) == ("user", "wrapped", "wrapped")


def test_who_needs_every_call_forbids_it(opened: AgentState, loop: type[Loop]) -> None:
    """A function that takes batches from an iterator is never aside."""
    opened.duty_cycle.forbid()
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")


def test_a_forked_child_has_all_its_wrappers(opened: AgentState, loop: type[Loop]) -> None:
    """The child of a resting job records from the start."""
    opened.duty_cycle.tick(START)
    busy(opened, 1000)
    opened.duty_cycle.tick(START + duty_cycle.FIRST_WINDOW_NS)
    opened.duty_cycle.after_fork()
    assert not opened.duty_cycle.detached
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")


def test_a_gap_ends_when_what_repeated_does_not(opened: AgentState, loop: type[Loop]) -> None:
    """A second without a call that counts: wrappers are back, and the next gap makes up for it."""
    counts = opened.duty_cycle.light(Kind.FUNCTION, lambda: None)
    second_gap(opened)
    began = opened.now()
    length = opened.duty_cycle.due_ns(began)
    assert opened.duty_cycle.detached
    assert length > 0
    for second in (1, 2):
        counts()
        opened.duty_cycle.tick(began + second * duty_cycle.REPORT_NS + second)
        assert opened.duty_cycle.detached
    opened.duty_cycle.tick(began + 3 * duty_cycle.REPORT_NS + 3)
    assert calls(loop) == ("wrapped", "wrapped", "wrapped")
    assert opened.duty_cycle._owed_ns > 0


def test_no_gap_is_longer_than_half_of_what_went_before(opened: AgentState) -> None:
    """The first is as long as its window, each other as half of what has passed; what they lack is made up for."""
    opened.duty_cycle.tick(START)
    now = START
    for passed in (1, 1.5, 2.75):  # in first windows; half of: it, a gap as long, one more; these, a gap, one more
        busy(opened, 20_000)
        now += duty_cycle.FIRST_WINDOW_NS
        opened.duty_cycle.tick(now)
        assert opened.duty_cycle.detached
        assert opened.duty_cycle._until - opened.duty_cycle._told == int(passed * duty_cycle.FIRST_WINDOW_NS)
        assert opened.duty_cycle._owed_ns > 0
        now += int(passed * duty_cycle.FIRST_WINDOW_NS)
        opened.duty_cycle.end(opened.now() + duty_cycle.MAX_GAP_NS)
        opened.duty_cycle._since = now
