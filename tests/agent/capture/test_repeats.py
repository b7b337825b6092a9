"""Which calls a process takes for its steps, by the records in its ring."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.agent.capture.made import MS, Record, calls

from stepscope.agent.capture.repeats import MIN_STEPS, OTHER_NS, RESTLESS_CALLS, TRAINS, Repeat, RepeatingCalls
from stepscope.wire.kinds import Flag, Kind

NAMES = {1: {"role": "train"}, 2: {"role": "test"}, 3: {"role": "enqueue"}, 4: {}, 5: {"role": "reads"}}


def elected(records: Iterable[Record], now_ms: int | None = None) -> Repeat | None:
    """What is elected when all of these have just been written."""
    kept = sorted(records, key=lambda r: r[0] + r[1])
    found = RepeatingCalls(lambda name: NAMES.get(name, {}), lambda traces: 7 in traces)
    found.add(kept)
    return found.elect(now_ms * MS if now_ms is not None else kept[-1][0] + kept[-1][1])


def names(records: Iterable[Record]) -> tuple[int, int] | None:
    """(kind, name) of what is elected."""
    repeat = elected(records)
    return repeat.key[:2] if repeat is not None else None


@pytest.mark.parametrize(
    ("records", "steady"),
    [
        (calls(MIN_STEPS - 1), False),
        (calls(MIN_STEPS), True),
        (calls(20, 10), False),
        (calls(40, 10), True),
        (calls(3, 700), True),
        (calls(2, 2_000), False),
    ],
)
def test_steps_are_steady_once_they_repeat_for_a_moment(records: list[Record], steady: bool) -> None:
    """Five calls and 0.3 s, or three long ones and a second; a single interval says nothing."""
    assert (elected(records) is not None) is steady


def test_a_trace_begins_the_count_again() -> None:
    """What warms up is no step: the calls after the last trace count, unless the program never ceases to trace."""
    warm = [*calls(4), *calls(1, at_ms=400, flags=Flag.TRACED)]
    assert elected([*warm, *calls(4, at_ms=500)]) is None
    assert elected([*warm, *calls(5, at_ms=500)]) is not None
    restless = [record for i in range(12) for record in calls(1, at_ms=600 * i, flags=Flag.TRACED * (i % 4 == 0))]
    assert len(restless) > RESTLESS_CALLS
    assert elected(restless) is not None


def test_a_pause_begins_the_count_again() -> None:
    """Two steps of a warm-up and three of the training ten seconds later are no five in a row."""
    assert elected([*calls(2), *calls(3, at_ms=10_000)]) is None
    assert elected([*calls(1), *calls(4, at_ms=10_000)]) is None
    assert elected([*calls(1), *calls(5, at_ms=10_000)]) is not None


def test_a_gap_of_the_duty_cycle_is_no_pause() -> None:
    """Steps of a few milliseconds are recorded for 0.15 s at a time; in between they go on."""
    windows = [calls(8, 10), calls(8, 10, at_ms=1_500)]
    gap = (80 * MS, 1_400 * MS, 290, 0, int(Kind.REST), 0, 2)
    assert elected([*windows[0], *windows[1]]) is None
    repeat = elected([*windows[0], gap, *windows[1]])
    assert repeat is not None
    assert repeat.step_ns == 10 * MS


def test_what_has_ceased_is_not_elected() -> None:
    """A series that ended a while ago is over."""
    assert elected(calls(20), now_ms=5_000) is None


@pytest.mark.parametrize(
    ("kind", "name", "other"),
    [(Kind.EXECUTION, 2, True), (Kind.MODEL_CALL, 4, True), (Kind.FUNCTION, 5, True), (Kind.APPLY, 4, False)],
)
def test_what_does_not_train_must_repeat_for_longer(kind: Kind, name: int, other: bool) -> None:
    """A training may follow an evaluation or a prediction."""
    assert (elected(calls(8, kind=kind, name=name)) is None) is other
    assert elected(calls(2 + OTHER_NS // (100 * MS), kind=kind, name=name)) is not None


def test_what_trains_is_preferred() -> None:
    """The train function before an evaluation of the same thread, and a step that the program names before both."""
    both = [*calls(40, name=2), *calls(40, at_ms=50)]
    assert names(both) == (Kind.EXECUTION, 1)
    assert names([*both, *calls(40, kind=Kind.STEP, name=4)]) == (Kind.STEP, 4)


def test_a_function_trains_if_its_graph_changes_variables() -> None:
    """Its traces are those made within its call; an optimizer applied from Python comes before one that only reads."""
    trace = (10 * MS, 20 * MS, 7, 9, int(Kind.TRACE), 0, 1)
    training = [
        *calls(1, kind=Kind.FUNCTION, name=4, flags=Flag.TRACED),
        *calls(6, kind=Kind.FUNCTION, name=4, at_ms=100),
    ]
    applied = calls(7, kind=Kind.APPLY, name=9, at_ms=51)
    assert names([*training, *applied]) == (Kind.APPLY, 9)
    assert names([trace, *training, *applied]) == (Kind.FUNCTION, 4)


@pytest.mark.parametrize(
    "records",
    [
        calls(40, kind=Kind.SESSION_RUN, name=3),
        calls(40, kind=Kind.INFERENCE),
        calls(40, kind=Kind.NEXT),
        calls(40, flags=Flag.NESTED),
    ],
)
def test_what_is_no_step_is_never_elected(records: list[Record]) -> None:
    """Runs that fill a queue, what TensorFlow cannot trace, inputs, and calls inside of others."""
    assert elected(records) is None


def test_of_two_functions_the_longer_is_the_step_and_the_other_usual() -> None:
    """What most steps call is no evaluation."""
    long = calls(10, kind=Kind.SESSION_RUN, name=4)
    short = [(start + 60 * MS, MS, *rest[2:3], 5, *rest[4:]) for start, *rest in [(r[0], *r) for r in long]]
    found = RepeatingCalls(lambda _: {}, lambda _: False)
    found.add(
        sorted([*long, *((s[0], MS, 0, 5, int(Kind.SESSION_RUN), 0, 1) for s in short)], key=lambda r: r[0] + r[1])
    )
    repeat = found.elect(1_000 * MS)
    assert repeat is not None
    assert repeat.key == (Kind.SESSION_RUN, 4, 1)
    assert repeat.step_ns == 100 * MS
    assert found.usual(repeat) == [(Kind.SESSION_RUN, 5)]


def test_the_longest_training_is_known_even_if_it_is_never_steady() -> None:
    """Calls of which each makes a trace are never elected, but the longest of those that train are known."""
    found = RepeatingCalls(lambda name: NAMES.get(name, {}), lambda traces: 7 in traces)
    found.add([*calls(40, flags=Flag.TRACED), *calls(60, name=2, at_ms=10)])
    longest = found.longest(TRAINS)
    assert longest is not None
    assert (longest.key[1], longest.calls, longest.last_ns > longest.first_ns) == (1, 40, True)
    assert RepeatingCalls(lambda name: {}, lambda traces: False).longest(TRAINS) is None


def test_a_run_that_a_hook_makes_is_no_step_although_it_is_steady_first() -> None:
    """Estimator's CheckpointSaverHook reads the global step after each run; hooks are not recorded for long."""
    read = calls(12, kind=Kind.SESSION_RUN, name=4, at_ms=80)
    hooks = calls(10, kind=Kind.CALLBACK, name=6, at_ms=80)
    assert names([*read, *hooks]) is None
    train = calls(8, kind=Kind.SESSION_RUN, name=5, at_ms=500)
    assert names([*read, *hooks, *train]) == (Kind.SESSION_RUN, 5)
    assert names(read) == (Kind.SESSION_RUN, 4)
