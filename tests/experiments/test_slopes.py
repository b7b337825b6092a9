"""Slopes of blocks, and when none is said."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from stepscope.experiments import slopes
from stepscope.experiments.blocks import Block
from stepscope.experiments.slopes import DelayedBlock

ORDER = (False, True, True, False)
ADDED = 1_000
STEPS = 50


def block(step_ns: int, *, on: bool, long: bool = False) -> DelayedBlock:
    """A block of 50 steps, each with two calls that are delayed by half of ``ADDED`` where it is on."""
    half = STEPS // 2
    inner = Block(
        on=on,
        long=long,
        count=int(on),
        steps=STEPS,
        steps_ns=STEPS * step_ns,
        late_steps=half,
        late_ns=half * step_ns,
    )
    delayed = 2 * STEPS if on else 0
    return DelayedBlock(
        block=inner,
        all_steps=STEPS,
        calls=2 * STEPS,
        delayed=delayed,
        added_ns=delayed * ADDED // 2,
        place_ns=STEPS * 4_000,
    )


def run(slope: float, *, turns: int = 4, noise: int = 20, long: float | None = None) -> list[DelayedBlock]:
    """Blocks in turn whose steps pay ``slope`` of what is added, and a long one that pays ``long``."""
    shifts = itertools.cycle((0, noise, -noise, 0, noise, 0, -noise, noise))
    made = [
        block(10_000 + round(slope * ADDED) * on + shift, on=on)
        for on, shift in zip(ORDER * turns, shifts, strict=False)
    ]
    pays = slope if long is None else long
    return [*made, block(10_000 + round(pays * ADDED), on=True, long=True), block(10_000, on=False)]


@pytest.mark.parametrize("truth", [0.0, 0.5, 1.0, 1.7])
def test_the_slope_is_what_the_steps_pay(truth: float) -> None:
    """Its interval holds the truth, and the place's time is that of a step."""
    found = slopes.judge(run(truth))
    assert found.why == ""
    assert found.low <= truth <= found.high
    assert found.slope == pytest.approx(truth, abs=0.05)
    assert (found.pairs, found.place_ns, found.added_ns) == (8, 4_000, ADDED)


def test_a_disturbed_block_does_not_count() -> None:
    """One of eight pairs is off by twenty times what was added: the middle of them stays."""
    made = run(1.0)
    made[3] = replace(made[3], block=replace(made[3].block, steps_ns=STEPS * 30_000))
    assert slopes.judge(made).slope == pytest.approx(1.0, abs=0.05)


def test_no_slope_from_noise() -> None:
    found = slopes.judge(run(1.0, noise=900))
    assert "wide" in found.why
    assert found.high - found.low > slopes.MAX_WIDTH


def test_no_slope_from_few_blocks() -> None:
    assert "expected 6" in slopes.judge(run(1.0, turns=2)).why


def test_no_slope_where_a_buffer_had_hidden_it() -> None:
    """Pairs show nothing, a longer time with the delay does."""
    assert "a buffer had hidden" in slopes.judge(run(0.0, long=0.9)).why


def test_no_slope_where_hardly_a_call_is_delayed() -> None:
    made = [replace(one, delayed=one.delayed // 10, added_ns=one.added_ns // 10) for one in run(1.0)]
    assert "hardly a call" in slopes.judge(made).why


def test_calls_that_run_ahead() -> None:
    """Calls of a block that are not those of its steps change nothing: they are counted over all blocks."""
    made = run(0.5)
    for at, more in ((0, 30), (2, -30)):
        made[at] = replace(made[at], calls=made[at].calls + more)
    assert slopes.judge(made).added_ns == pytest.approx(ADDED)
