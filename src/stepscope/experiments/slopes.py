"""What blocks of steps with a small added delay at a place say: which part of the place's time the steps pay.

The slope is the time that a step takes longer over the time that was added to it: 1 where nothing hides the place, 0
where other threads do, above 1 where it holds others up. Slope times the place's time in a step is what the step pays
for the place. Blocks are those of ``experiments.blocks``, and what makes these unfit makes a slope unfit.

Source: Curtsinger and Berger, Coz: Finding Code that Counts with Causal Profiling, SOSP 2015. Coz delays all other
threads instead; a step has an end that is seen, so the place itself can be delayed.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.experiments import blocks as in_blocks
from stepscope.experiments.student import student_reach
from stepscope.wire.trimmed import middle_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.experiments.blocks import Block

LEVEL = 0.95
"""Level of a slope's interval."""
MIN_PAIRS = 6
"""Least pairs of blocks: with fewer the interval is at least 1.5 times as wide at the same noise."""
MAX_WIDTH = 0.4
"""Width of the interval from which no slope is said."""
CHANGED, DEVIATIONS = 0.3, 4.0
"""Slope of the long block's later half beyond that of the pairs from which a buffer had hidden a part of it, if it is
also so many standard deviations of a pair away."""
MIN_ADDED = 0.25
"""Share of the delay that must have been added: of calls that are not made there is none."""


class DelayedBlock(Struct, frozen=True, kw_only=True):
    """A block, and what its calls took. Times in ns; ``model.log.intervention.BlockEnded`` has the fields."""

    block: Block
    all_steps: int
    calls: int
    delayed: int
    added_ns: int
    place_ns: int


class SlopeVerdict(Struct, frozen=True, kw_only=True):
    """What blocks say of a place."""

    slope: float = 0.0
    low: float = 0.0
    high: float = 0.0
    """Upper end of the interval; low and high are 0 if there is none."""
    pairs: int = 0
    step_ns: float = 0.0
    """Mean time of a step without delays."""
    place_ns: float = 0.0
    """Time of the place in a step without delays, over all threads."""
    added_ns: float = 0.0
    """Time that was added to a step."""
    why: str = ""
    """Why no slope is said; "" if one is."""


def judge(found: Sequence[DelayedBlock], *, level: float = LEVEL) -> SlopeVerdict:
    """What blocks say, in the order in which they were made."""
    usual, last = in_blocks.parts([one.block for one in found])
    neighbours = in_blocks.neighbours(usual, 0)
    off = [one for one in found if not one.block.on]
    step_ns = fmean([one.block.ns for one in off if one.block.ns] or [0.0])
    place_ns = sum(one.place_ns for one in off) / max(1, sum(one.all_steps for one in off))
    added_ns = _added(found)
    if len(neighbours) < MIN_PAIRS:
        why = f"the job's steady steps gave {len(neighbours)} pairs of blocks; expected {MIN_PAIRS}"
        return SlopeVerdict(why=why, pairs=len(neighbours), step_ns=step_ns, place_ns=place_ns, added_ns=added_ns)
    if not added_ns:
        why = "hardly a call was delayed: the place is not called in most steps"
        return SlopeVerdict(why=why, pairs=len(neighbours), step_ns=step_ns, place_ns=place_ns)
    slopes = [(before - after if one.on else after - before) / added_ns for one, before, after in neighbours]
    middle, error, freedom = middle_of(slopes)
    reach = student_reach(level, freedom) * error
    low, high = middle - reach, middle + reach
    deviation = error * math.sqrt(len(slopes))
    why = in_blocks.unfit(usual) or _wide(low, high) or _hidden(middle, deviation, last, added_ns)
    return SlopeVerdict(
        slope=middle,
        low=low,
        high=high,
        pairs=len(slopes),
        step_ns=step_ns,
        place_ns=place_ns,
        added_ns=added_ns,
        why=why,
    )


def _added(found: Sequence[DelayedBlock]) -> float:
    """Time that was added to a step: that of a delayed call times the calls of a step. 0: too few calls were.

    Where calls run ahead of the steps, those of one block are not those of its steps; of all blocks they are.
    """
    calls, steps = sum(one.calls for one in found), sum(one.all_steps for one in found)
    on = [one for one in found if one.block.on]
    delayed, added = sum(one.delayed for one in on), sum(one.added_ns for one in on)
    if not (calls and steps and delayed) or delayed < MIN_ADDED * sum(one.calls for one in on):
        return 0.0
    return added / delayed * calls / steps


def _wide(low: float, high: float) -> str:
    """That the interval is too wide; "" if it is not."""
    if high - low <= MAX_WIDTH:
        return ""
    return f"the interval is {high - low:.1f} wide ({low:.2f} to {high:.2f}): more time (--time) or a quieter machine"


def _hidden(middle: float, deviation: float, last: Sequence[Block], added_ns: float) -> str:
    """How much more a longer time with delays costs; "" if it does not, surely. ``deviation``: of a pair's slope."""
    if len(last) < len(("long", "off")) or not (last[0].late and last[1].ns):
        return ""
    later = (last[0].late - last[1].ns) / added_ns
    if later - middle < max(CHANGED, DEVIATIONS * deviation):
        return ""
    return f"after a longer time the slope is {later:.1f}: a buffer had hidden a part of it"
