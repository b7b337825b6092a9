"""Delays at a place, on real programs: what is added, what is found out first, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import Trialled, run, switch

from stepscope.agent.trials.slopes import tally as numbers
from stepscope.agent.trials.slopes.place import items_of
from stepscope.agent.trials.switching import ORDER

STEP = """
import queue, threading, time, tensorflow as tf
weights = tf.Variable(1.0)
@tf.function
def step(x):
    weights.assign_sub(0.001 * x * weights)
    return weights
"""

EXPOSED = (
    STEP
    + """
def load(number):
    time.sleep(0.02)
    return tf.constant(float(number % 7))
last = 0.0
for number in range(STEPS):
    last = step(load(number))
print(float(last).hex())
"""
)

HIDDEN = (
    STEP
    + """
batches = queue.Queue(5)
def load():
    time.sleep(0.01)
    return tf.constant(1.0)
def work():
    while True: batches.put(load())
threading.Thread(target=work, daemon=True).start()
while True:
    step(batches.get())
    time.sleep(0.05)
"""
)

ASIDE = (
    STEP
    + """
def other(): time.sleep(0.01)
while True:
    step(tf.constant(1.0))
    time.sleep(0.01)
"""
)

UNORDERED = (
    STEP
    + """
def load(x):
    time.sleep(0.005)
    return x
data = tf.data.Dataset.range(1_000_000).map(
    lambda x: tf.numpy_function(load, [tf.cast(x, tf.float32)], tf.float32), num_parallel_calls=2, deterministic=False)
for x in data: step(tf.ensure_shape(x, ()))
"""
)


def alternates(trial: Trialled) -> None:
    """Blocks are off, on, on, off; calls are delayed where it is on, and time is added to them alone."""
    usual = [one for one in trial.blocks if not one.long]
    assert len(usual) >= 4, (trial.interventions, trial.delay, trial.errors)
    assert [one.on for one in usual[:4]] == list(ORDER)
    assert all(one.delayed > 0 and one.added_ns > 0 for one in trial.blocks if one.on)


@pytest.mark.tf
def test_calls_take_longer_where_it_is_on(armed: Armed) -> None:
    """The place waits, so the delay sleeps; nothing lies between place and step but the step that runs."""
    trial = switch(armed, EXPOSED.replace("STEPS", "1_000_000"), "slopes:load", most_s=12.0)
    alternates(trial)
    assert (trial.delay.how, trial.delay.deep, trial.delay.why) == ("sleep", False, "")
    assert trial.delay.buffered <= 2
    assert trial.delay.threads == 1
    assert trial.delay.delay_ns > 0
    assert trial.interventions["slopes"].outcome == "in-effect"


@pytest.mark.tf
def test_results_stay_bit_equal(armed: Armed) -> None:
    """The program prints what it prints without us."""
    program = EXPOSED.replace("STEPS", "250")
    plain = run(armed, program).output
    trial = switch(armed, program, "slopes:load", most_s=12.0)
    assert trial.output == plain != ""
    assert any(one.added_ns for one in trial.blocks)


@pytest.mark.tf
def test_what_is_buffered_is_counted(armed: Armed) -> None:
    """Steps go on while the queue has batches: five, one in the loader's hand, one in the step."""
    trial = switch(armed, HIDDEN, "slopes:load", most_s=12.0)
    alternates(trial)
    assert 4 <= trial.delay.buffered <= 8
    assert not trial.delay.deep


@pytest.mark.tf
def test_a_place_that_is_not_called(armed: Armed) -> None:
    trial = switch(armed, ASIDE, "slopes:other", most_s=12.0)
    assert not trial.blocks
    assert trial.delay.why == "other is not called while steps are made"


@pytest.mark.tf
def test_no_slope_without_an_order(armed: Armed) -> None:
    """Elements that come as they are ready would come in another order, and results would change."""
    trial = switch(armed, UNORDERED, "slopes:load", most_s=12.0)
    assert not trial.blocks
    assert "no fixed order" in trial.delay.why


def timed(real: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """Call at once."""
    return real(*args, **kwargs)


def echo() -> Generator[object, object, str]:
    """Give back what is sent, and name what is thrown."""
    given: object = "first"
    while given != "end":
        try:
            given = yield given
        except ValueError as error:
            given = str(error)
    return "over"


def test_a_generator_is_itself() -> None:
    """What is sent, thrown and returned passes, and closing closes it."""
    made = items_of(timed, echo())
    assert (next(made), made.send(2), made.throw(ValueError("wrong"))) == ("first", 2, "wrong")
    with pytest.raises(StopIteration) as end:
        made.send("end")
    assert end.value.value == "over"
    inner = echo()
    outer = items_of(timed, inner)
    next(outer)
    outer.close()
    assert list(inner) == []


def test_each_thread_has_its_own_numbers() -> None:
    """Ids that fall on one place get two; a thread keeps its own; none is left beyond the most."""
    tally = numbers.Tally()
    one, other = tally.claim(7), tally.claim(7 + numbers.THREADS)
    assert one != other
    assert tally.claim(7) == one
    tally.words[one + numbers.CALLS] = 2
    tally.words[other + numbers.CALLS] = 3
    assert (tally.total(numbers.CALLS), tally.threads()) == (5, 2)
    for tid in range(1, 3 * numbers.THREADS):
        tally.claim(tid)
    assert tally.claim(10 * numbers.THREADS + 1) == -1
