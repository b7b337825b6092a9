"""What the blocks of one process say, in which a trial was switched on and off: pairs of times, or why nothing.

The blocks are off, on, on, off, off, on, on, off ...: two neighbours are a pair, and so are the two that are off side
by side, which differ by noise alone. Blocks that cannot stand for the job say nothing, and the trial is made in whole
processes instead: where much of the time is in ends of epochs, which no block has as often as the job; where few steps
have much of it, because something acts every so many steps; where a block still changes in its later half, or the long
one at the end has used up what was held in a queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

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
USED_UP = 1.25
"""Step of the long block's later half over that of the others that are on, from which a queue was used up: blocks of
equal programs differ by less (docs/decisions/0058-in-process-trials.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What blocks say."""

    pairs: tuple[tuple[float, float], ...] = ()
    """(off, on) of neighbours: mean time of a step, ns."""
    unchanged: tuple[tuple[float, float], ...] = ()
    """The same of two that are off."""
    why: str = ""
    """Why they say nothing; "" if they do."""

    def times(self, factor: float) -> Judged:
        """The same with all times multiplied."""
        pairs = tuple((before * factor, after * factor) for before, after in self.pairs)
        unchanged = tuple((before * factor, after * factor) for before, after in self.unchanged)
        return Judged(pairs=pairs, unchanged=unchanged, why=self.why)


def judge(blocks: Sequence[Block]) -> Judged:
    """What blocks say, in the order in which they were made."""
    usual = [block for block in blocks if not block.long]
    pairs = _neighbours(usual, 0)
    if len(pairs) < statistics.MIN_PAIRS:
        return Judged(why=f"the job's steady steps gave {len(pairs)} pairs of blocks; expected {statistics.MIN_PAIRS}")
    why = _unfit(usual) or _unsettled(usual) or _used_up(blocks)
    if why:
        return Judged(why=why)
    ordered = [(after, before) if one.on else (before, after) for one, before, after in pairs]
    return Judged(pairs=tuple(ordered), unchanged=tuple(_alternating(_neighbours(usual, 1))))


def _neighbours(blocks: Sequence[Block], first: int) -> list[tuple[Block, float, float]]:
    """Every second block from ``first`` on with the one behind it, of those that are on and off, or both off."""
    found = []
    for one, other in zip(blocks[first::2], blocks[first + 1 :: 2], strict=False):
        if one.ns and other.ns and (one.on != other.on if first == 0 else not (one.on or other.on)):
            found.append((one, one.ns, other.ns))
    return found


def _alternating(pairs: Iterable[tuple[Block, float, float]]) -> list[tuple[float, float]]:
    """Pairs of equals, every second one turned round, as those of on and off are."""
    return [(b, a) if number % 2 else (a, b) for number, (_, a, b) in enumerate(pairs)]


def _unfit(blocks: Sequence[Block]) -> str:
    """Why blocks do not stand for the job; "" if they do."""
    idle = sum(block.on and not block.count for block in blocks)
    if idle:
        return f"in {idle} of {sum(block.on for block in blocks)} blocks there was nothing to change"
    off = [block for block in blocks if not block.on]
    steps_ns, ends_ns = sum(block.steps_ns for block in off), sum(block.ends_ns for block in off)
    apart = ends_ns / max(1, steps_ns + ends_ns)
    if apart >= MOST_RATIO:
        return f"{100 * apart:.0f} % of the time is in ends of epochs, validation or traces, which blocks leave out"
    lumps = sum(block.lumps_ns for block in off) / max(1, steps_ns)
    if lumps >= MOST_RATIO and fmean(block.lumps for block in off) < FEW:
        return f"{100 * lumps:.0f} % of the time is in few steps: blocks are too short for what acts so seldom"
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


def _used_up(blocks: Sequence[Block]) -> str:
    """How much slower a longer time with the trial on is; "" if it is not."""
    long = next((block for block in blocks if block.long), None)
    on = [block.ns for block in blocks if block.on and not block.long and block.ns]
    if long is None or not long.late or long.late < USED_UP * max(on):
        return ""
    return f"after a longer time a step takes {long.late / fmean(on):.1f} times as long: a queue had hidden it"
