"""What blocks of one process say, and when they say nothing."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from stepscope.experiments import blocks
from stepscope.experiments.blocks import Block

ORDER = (False, True, True, False)


def block(ns: int, *, on: bool, steps: int = 100, late: float = 1.0) -> Block:
    """A block of steps of ``ns``, those of the later half ``late`` times as long as the others."""
    half = steps // 2
    early_ns = round(half * 2 * ns / (1 + late))
    return Block(
        on=on, steps=steps, steps_ns=steps * ns, late_steps=steps - half, late_ns=steps * ns - early_ns, count=int(on)
    )


def run(off: int = 100, on: int = 50, *, turns: int = 3, late: float = 1.0) -> list[Block]:
    """Blocks in turn; the times rise by one from block to block."""
    made = [
        block((on if state else off) * 1000 + number, on=state, late=late) for number, state in enumerate(ORDER * turns)
    ]
    return [*made, replace(block(on * 1000, on=True), long=True), block(off * 1000, on=False)]


def test_neighbours_are_pairs() -> None:
    """Each block that is on has its neighbour that is off, once; those that are off side by side are compared, too."""
    found = blocks.judge(run())
    assert found.why == ""
    assert found.pairs[:3] == ((100000, 50001), (100003, 50002), (100004, 50005))
    assert len(found.pairs) == 6
    assert found.unchanged == ((100003, 100004), (100008, 100007))


def test_blocks_that_live_on_a_queue_are_uneven() -> None:
    """Some that are on are shorter by far, in no order; where those that are off vary as much, it is the machine."""
    made, factors = run(turns=4), iter((5, 1, 2, 5, 1, 4, 2, 1))
    uneven = [replace(one, steps_ns=one.steps_ns * next(factors), late_steps=0) if one.on else one for one in made[:-2]]
    assert "blocks that are on differ by a factor of 2.0" in blocks.judge(uneven).why
    turns = itertools.cycle((1, 4))
    noisy = [one if one.on else replace(one, steps_ns=one.steps_ns * next(turns), late_steps=0) for one in uneven]
    assert "differ" not in blocks.judge(noisy).why


def test_times_are_multiplied() -> None:
    found = blocks.judge(run()).times(0.5)
    assert (found.pairs[0], found.unchanged[0]) == ((50000, 25000.5), (50001.5, 50002))


def test_a_block_without_steps_loses_its_pair_alone() -> None:
    made = run()
    made[5] = replace(made[5], steps=2, late_steps=0, late_ns=0)
    assert len(blocks.judge(made).pairs) == 5


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ([], "gave 0 pairs of blocks; expected 3"),
        (run(turns=1), "gave 2 pairs of blocks; expected 3"),
        ([replace(one, count=0) for one in run()], "in 6 of 6 blocks there was nothing to change"),
        ([replace(one, ends=1, ends_ns=600_000) for one in run()], "6 % of the time is ends of epochs"),
        ([replace(one, lumps=1, lumps_ns=600_000) for one in run()], "6 % of the time is in a few long steps"),
        (
            [
                replace(one, steps_ns=2 * one.steps_ns, late_ns=2 * one.late_ns) if i % 4 == 2 else one
                for i, one in enumerate(run())
            ],
            "the second block that is on in a row is 100 % slower",
        ),
        (run(late=1.5), "steps still change within a block that is on, by +50 %"),
        ([*run()[:-2], replace(run()[-2], late_ns=5_000_000), run()[-1]], "a step takes 2.0 times as long: a queue"),
    ],
    ids=["none", "few", "idle", "epochs", "seldom", "refilled", "unsettled", "queue"],
)
def test_blocks_that_say_nothing(made: list[Block], why: str) -> None:
    """They have no pairs, and say why."""
    found = blocks.judge(made)
    assert found.pairs == found.unchanged == ()
    assert why in found.why


def test_what_is_rare_but_short_is_left_out() -> None:
    """Ends of epochs, and single long steps, that take less than 5 % of the time."""
    made = [replace(one, ends=1, ends_ns=400_000, lumps=1, lumps_ns=400_000) for one in run()]
    assert blocks.judge(made).pairs


def test_many_long_steps_are_the_job() -> None:
    """A save every tenth step is in the mean of each block."""
    made = [replace(one, lumps=10, lumps_ns=5_000_000) for one in run()]
    assert blocks.judge(made).pairs


def test_a_machine_that_became_slower_is_no_queue() -> None:
    """The block behind the long one is as much slower."""
    *made, long, last = run()
    assert blocks.judge([*made, replace(long, late_ns=5_000_000), replace(last, steps_ns=20_000_000)]).pairs


def test_noisy_pairs_show_no_queue() -> None:
    """What is as far from the pairs as they are from each other is chance."""
    made = [replace(one, steps_ns=one.steps_ns * (1 + number % 3)) for number, one in enumerate(run()[:-2])]
    assert blocks.judge([*made, replace(run()[-2], late_ns=5_000_000), run()[-1]]).pairs
