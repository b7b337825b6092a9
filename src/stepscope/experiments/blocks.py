"""What the blocks of one process say, in which a trial was switched on and off: pairs of times, or why nothing.

The blocks are off, on, on, off, off, on, on, off ...: two neighbours are a pair, and so are the two that are off side
by side, which differ by noise alone. Blocks that cannot stand for the job say nothing, and the trial is made in whole
processes instead: where much of the time is in ends of epochs, which no block has as often as the job; where few steps
have much of it, because something acts every so many steps; where a block still changes in its later half; where
the second of two that are on is slower, or the long one near the end, because what a queue held was used up; where
those that are on differ far more among themselves than those that are off.
"""

from __future__ import annotations

import itertools
import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.experiments import statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MIN_STEPS = 3
"""Least steps in the part of a block that counts."""
MOST_RATIO = 0.05
"""Share of the time in ends of epochs, or in few long steps, from which blocks do not stand for the job: the least that
a trial is worth its time for (``plan.MIN_RATIO``)."""
FEW = 4.0
"""Long steps in a block from which there are enough of them for its mean."""
SETTLED = 0.10
"""Change of a step from the earlier to the later half of blocks up to which they have settled."""
USED_UP, DEVIATIONS = 1.25, 4.0
"""Ratio of the long block's later half over that of the pairs, from which a queue was used up, if it is also so many
standard deviations of a pair away: chance reaches 4 of them, with 5 degrees of freedom, once in a hundred."""
UNEVEN = 1.5
"""Factor by which pairs differ among themselves (one standard deviation), from which some blocks live on a queue. Pairs
of equals differ by 1.11 to 1.14 on a busy machine (docs/decisions/0058-in-process-trials.md)."""


class Block(Struct, frozen=True, kw_only=True):
    """A time with the trial on, or off. Times in ns; ``model.log.intervention.BlockEnded`` has the fields."""

    on: bool
    long: bool = False
    count: int = 1
    steps: int
    steps_ns: int
    late_steps: int = 0
    late_ns: int = 0
    ends: int = 0
    ends_ns: int = 0
    lumps: int = 0
    lumps_ns: int = 0

    @property
    def ns(self) -> float:
        """Mean time of a step; 0 if it has too few."""
        return self.steps_ns / self.steps if self.steps >= MIN_STEPS else 0.0

    @property
    def late(self) -> float:
        """Mean time of a step in the later half; 0 if there is none."""
        return self.late_ns / self.late_steps if self.late_steps else 0.0

    @property
    def early(self) -> float:
        """Mean time of a step in the earlier half; 0 if there is none."""
        steps = self.steps - self.late_steps
        return (self.steps_ns - self.late_ns) / steps if steps else 0.0


class BlockVerdict(Struct, frozen=True, kw_only=True):
    """What blocks say."""

    pairs: tuple[tuple[float, float], ...] = ()
    """(off, on) of neighbours: mean time of a step, ns."""
    unchanged: tuple[tuple[float, float], ...] = ()
    """The same of two that are off."""
    why: str = ""
    """Why they say nothing; "" if they do."""

    def times(self, factor: float) -> BlockVerdict:
        """The same with all times multiplied."""
        pairs = tuple((before * factor, after * factor) for before, after in self.pairs)
        unchanged = tuple((before * factor, after * factor) for before, after in self.unchanged)
        return BlockVerdict(pairs=pairs, unchanged=unchanged, why=self.why)


def judge(blocks: Sequence[Block]) -> BlockVerdict:
    """What blocks say, in the order in which they were made."""
    usual, last = parts(blocks)
    pairs = neighbours(usual, 0)
    if len(pairs) < statistics.MIN_PAIRS:
        return BlockVerdict(
            why=f"the job's steady steps gave {len(pairs)} pairs of blocks; expected {statistics.MIN_PAIRS}"
        )
    ordered = [(after, before) if one.on else (before, after) for one, before, after in pairs]
    unchanged = _alternating(neighbours(usual, 1))
    why = (
        unfit(usual)
        or _lumpy(usual)
        or _unsettled(usual)
        or _refilled(usual)
        or _uneven(ordered, unchanged)
        or _used_up(ordered, last)
    )
    if why:
        return BlockVerdict(why=why)
    return BlockVerdict(pairs=tuple(ordered), unchanged=tuple(unchanged))


def neighbours(blocks: Sequence[Block], first: int) -> list[tuple[Block, float, float]]:
    """Every second block from ``first`` on with the one behind it, of those that are on and off, or both off."""
    found = []
    for one, other in zip(blocks[first::2], blocks[first + 1 :: 2], strict=False):
        if one.ns and other.ns and (one.on != other.on if first == 0 else not (one.on or other.on)):
            found.append((one, one.ns, other.ns))
    return found


def _alternating(pairs: Iterable[tuple[Block, float, float]]) -> list[tuple[float, float]]:
    """Pairs of equals, every second one turned round, as those of on and off are."""
    return [(b, a) if number % 2 else (a, b) for number, (_, a, b) in enumerate(pairs)]


def unfit(blocks: Sequence[Block]) -> str:
    """Why blocks do not stand for the job; "" if they do."""
    idle = sum(block.on and not block.count for block in blocks)
    if idle:
        return f"in {idle} of {sum(block.on for block in blocks)} blocks there was nothing to change"
    off = [block for block in blocks if not block.on]
    steps_ns, ends_ns = sum(block.steps_ns for block in off), sum(block.ends_ns for block in off)
    apart = ends_ns / max(1, steps_ns + ends_ns)
    if apart >= MOST_RATIO:
        return f"{100 * apart:.0f} % of the time is ends of epochs, validation or tracing; only steps are switched"
    return ""


def _lumpy(blocks: Sequence[Block]) -> str:
    """How much of the time few long steps have; "" if little."""
    off = [block for block in blocks if not block.on]
    steps_ns = sum(block.steps_ns for block in off)
    lumps = sum(block.lumps_ns for block in off) / max(1, steps_ns)
    if lumps >= MOST_RATIO and fmean(block.lumps for block in off) < FEW:
        return f"{100 * lumps:.0f} % of the time is in a few long steps, too seldom to lie evenly on both sides"
    return ""


def _unsettled(blocks: Sequence[Block]) -> str:
    """How steps change within blocks, surely and by much; "" if they do not."""
    for on in (True, False):
        halves = [(block.early, block.late) for block in blocks if block.on == on and block.early and block.late]
        if len(halves) < statistics.MIN_PAIRS:
            continue
        effect = statistics.paired([early for early, _ in halves], [late for _, late in halves])
        if statistics.verdict(effect, over=SETTLED) in {"faster", "slower"}:
            change = 100 * (effect.ratio - 1)
            return f"steps still change within a block that is {'on' if on else 'off'}, by {change:+.0f} %"
    return ""


def _refilled(blocks: Sequence[Block]) -> str:
    """How much slower the second of two blocks that are on in a row is; "" if it is not, surely and by much.

    While the trial is off a queue fills, and the first block that is on lives on that.
    """
    turns = itertools.pairwise(blocks)
    both = [(one.ns, other.ns) for one, other in turns if one.on and other.on and one.ns and other.ns]
    if len(both) < statistics.MIN_PAIRS:
        return ""
    effect = statistics.paired([one for one, _ in both], [other for _, other in both])
    if statistics.verdict(effect, over=SETTLED) != "slower":
        return ""
    return f"the second block that is on in a row is {100 * (effect.ratio - 1):.0f} % slower: a queue hides the wait"


def _uneven(pairs: Sequence[tuple[float, float]], unchanged: Sequence[tuple[float, float]]) -> str:
    """How much blocks that are on differ among themselves; "" if hardly, or if those that are off do as well.

    Some live on what a queue held, others do not.
    """
    spread, usual = _spread(pairs), _spread(unchanged)
    if spread < max(math.log(UNEVEN), DEVIATIONS * usual):
        return ""
    return f"blocks that are on differ by a factor of {math.exp(spread):.1f}: a queue hides the wait in some of them"


def _spread(pairs: Sequence[tuple[float, float]]) -> float:
    """Standard deviation of the logarithms of ratios; 0 with fewer than two."""
    return stdev(math.log(after / before) for before, after in pairs) if len(pairs) > 1 else 0.0


def parts(blocks: Sequence[Block]) -> tuple[Sequence[Block], Sequence[Block]]:
    """The blocks in turn, and the long one with the one behind it."""
    end = next((place for place, block in enumerate(blocks) if block.long), len(blocks))
    return blocks[:end], blocks[end:]


def _used_up(pairs: Sequence[tuple[float, float]], last: Sequence[Block]) -> str:
    """How much slower a longer time with the trial on is, against the block behind it; "" if it is not, surely."""
    if len(last) < len(("long", "off")) or not (last[0].late and last[1].ns):
        return ""
    logs = [math.log(after / before) for before, after in pairs]
    more = math.log(last[0].late / last[1].ns) - fmean(logs)
    if more < max(math.log(USED_UP), DEVIATIONS * stdev(logs)):
        return ""
    return f"after a longer time a step takes {math.exp(more):.1f} times as long: a queue had hidden it"
