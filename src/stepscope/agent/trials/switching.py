"""A trial in one process: once steps are steady, its intervention is switched on and off in blocks.

The blocks are off, on, on, off, again and again, so that a drift hits both alike, after one that is not counted. The
first quarter of a block is dropped, because queues fill and drain behind the switch. A step lasts from the end
of the previous step to its own. Steps that contain the end of a fit, epoch, validation or trace are set apart.
Blocks end when both sides have been seen often enough, or are so far apart that more would not change the answer. Then
come a long one that is on, in which what a queue had held is used up, and a last one that is off, to compare it with.

``experiments.blocks`` judges what is logged: a ``block`` line for each. Blocks of delays (``slopes``) begin when the
place is known, are longer than what is buffered, of which the steps are dropped, and end when the slope is.
"""

from __future__ import annotations

import math
import operator

from stepscope.wire.kinds import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Optional

    from stepscope.agent.capture.repeats import Key, Repeat
    from stepscope.agent.trials.effect import Delays, Effect

    Record = tuple[int, ...]
    Counts = tuple[int, int, int, int]
    """Calls of a place, delayed ones, ns that were added, and the place's ns."""
    Named = Callable[[int], Mapping[str, object]]
    """Function of a name's number that gives the fields of its line."""

ORDER = (False, True, True, False)
"""Blocks in turn: on or not."""
MOST = 32
"""Blocks, without the long one and the one behind it."""
MOST_OF_DELAYS = 4_000
"""The same of delays, which end by their time, or their slope."""
LEAST_PAIRS, FAR, LEAST = 6, 10.0, 0.05
"""Pairs of blocks after which they may end early, and the distance of both sides that ends them: so many standard
errors and a part. Chance reaches 10 of them with 5 degrees of freedom twice in ten thousand (Student's t); fewer pairs
have an interval twice as wide."""
STEPS = 8
"""Least steps of a block."""
MORE_STEPS, MORE_NS = 3, 100_000_000
"""A block that is on ends early when it has so many times the steps of the last one that was off, and lasted so long:
a short program would have no steps left."""
LONG = 4
"""Length of the long block over that of the others."""
GONE_NS = 2_000_000_000
"""Time without a step after which other calls that are steady are the steps."""
LONGEST_NS = 4_000_000_000
"""Time after which a block must have its steps."""
USUAL_NS, MOST_NS = 25_000_000_000, 60_000_000_000
"""Time after which only the last two blocks begin, and time of all blocks."""
LAST = LONG + 2
"""Blocks for which delays leave time: the long one, the one behind it, and one that runs."""
REACHED_NS = 3_000_000_000
"""Steady steps after which what the intervention changes must have been seen."""
LUMP = 8
"""Times over the block's median step from which a step is one of those that something rare makes long."""
OFTEN = 0.5
"""Share of the steps in which an end belongs to the step: a program that fits one batch at a time."""
_OUT = int(Flag.END) | int(Flag.NESTED)
_END = int(Flag.END)
_TRACE, _LOOP, _HOOK, _NEXT = int(Kind.TRACE), int(Kind.LOOP), int(Kind.HOOK), int(Kind.NEXT)
_EPOCH = "_epoch_"


class Block:
    """Time with the intervention on, or off."""

    __slots__ = ("at_ns", "count", "counts", "cuts", "ends", "on")

    def __init__(self, at_ns: int, count: int, *, on: bool, counts: Counts = (0, 0, 0, 0)) -> None:
        """``count``: how often the intervention had taken hold; ``counts``: of the place of delays, so far."""
        self.counts = counts
        self.at_ns = at_ns
        self.on = on
        self.count = count
        self.ends: list[int] = []
        """Ends of its steps."""
        self.cuts: list[int] = []
        """Ends of what is no step."""


class Switching:
    """Switches one intervention. ``tick`` on the agent's thread."""

    def __init__(self, effect: Effect, block_s: float, most_s: float = 0.0) -> None:
        """``block_s``: least seconds of a block; ``most_s``: of all blocks of delays."""
        self._delays = effect.delays
        self._usual_ns, self._most_ns = USUAL_NS, MOST_NS
        if self._delays is not None and most_s:
            self._usual_ns = self._most_ns = int(most_s * 1e9)
            self._delays.seconds = most_s
        self._blocks = MOST if self._delays is None else MOST_OF_DELAYS
        self.over = False
        """Whether there is nothing left to measure."""
        self._effect = effect
        self._least_ns = int(block_s * 1e9)
        self._key: Optional[Key] = None
        self._block: Optional[Block] = None
        self._lines: list[dict[str, object]] = []
        self._means: list[tuple[bool, float]] = []
        """On or not, and the mean time of a step, of each block; 0: it has too few."""
        self._place = -1
        """Number of the running block; -1: the one that is not counted."""
        self._began_ns = 0
        self._last_ns = 0
        """End of the newest step."""
        self._off_steps = 0
        """Steps of the last block that was off."""
        self._epochs: dict[int, bool] = {}
        """Whether a name is that of an epoch's hook."""

    def tick(self, records: Iterable[Record], elected: Optional[Repeat], now_ns: int, named: Named) -> None:
        """Take what is new, and switch if it is time."""
        block = self._block
        if block is None:
            if elected is not None:
                self._begin(elected.key, now_ns)
            return
        self._add(block, records, named)
        if elected is not None and elected.key != self._key and now_ns - self._last_ns > GONE_NS:
            self._begin(elected.key, now_ns)  # another phase of the program: what was seen is about something else
        elif now_ns - self._began_ns > self._most_ns:
            self.over = True
        elif self._place < 0 and self._delays is not None:
            self._prepare(self._delays, block, now_ns)
        elif self._place < 0:
            self._first(block, now_ns)
        elif self._ends(block, now_ns):
            self._close(block, now_ns)
        elif now_ns - block.at_ns > LONGEST_NS + self._wanted_ns():
            self._effect.missed("its steps are too long, or too irregular, to be switched between")
            self.over = True

    def take_lines(self) -> list[dict[str, object]]:
        """The lines of the log, once."""
        lines, self._lines = self._lines, []
        return [*lines, *([self._delays.line()] if self._delays is not None and self._key is not None else [])]

    def _begin(self, key: Key, now_ns: int) -> None:
        self._key = key
        self._place = -1
        self._began_ns = self._last_ns = now_ns
        self._lines.clear()
        self._means.clear()
        self._effect.switch(on=False)
        self._block = Block(now_ns, self._effect.count, on=False)
        if self._delays is not None:
            self._delays.restart()

    def _prepare(self, delays: Delays, block: Block, now_ns: int) -> None:
        """The block that is not counted: it ends once the place of delays is known."""
        self.over = not delays.prepare(block.ends, now_ns)
        if delays.prepared:
            self._least_ns = max(self._least_ns, delays.block_ns)
            self._usual_ns = self._most_ns - LAST * self._least_ns
            self._next(now_ns)

    def _first(self, block: Block, now_ns: int) -> None:
        """The block that is not counted: it ends once the intervention was seen to have something to change."""
        lasted = now_ns - block.at_ns
        if lasted >= self._least_ns and not self._effect.pending and (self._effect.passes or self._effect.on_switch):
            self._next(now_ns)
        elif lasted > REACHED_NS + self._least_ns:
            self.over = True

    def _wanted_ns(self) -> int:
        return self._least_ns * (LONG if self._place == self._blocks else 1)

    def _ends(self, block: Block, now_ns: int) -> bool:
        lasted, steps = now_ns - block.at_ns, len(block.ends)
        if steps < STEPS:
            return False
        many = (
            self._delays is None
            and block.on
            and self._place < MOST
            and steps >= MORE_STEPS * max(self._off_steps, STEPS)
        )
        return lasted >= self._wanted_ns() or (many and lasted >= MORE_NS)

    def _close(self, block: Block, now_ns: int) -> None:
        self._lines.append(self._line(block, now_ns))
        if not block.on:
            self._off_steps = len(block.ends)
        if self._place > self._blocks:
            self.over = True
            return
        known = far(self._means) if self._delays is None else self._delays.enough(self._means)
        enough = known or now_ns - self._began_ns >= self._usual_ns
        if enough and self._place < self._blocks and self._place % len(ORDER) == len(ORDER) - 1:
            self._place = self._blocks - 1
        self._next(now_ns)

    def _next(self, now_ns: int) -> None:
        self._place += 1
        on = ORDER[self._place % len(ORDER)] if self._place < self._blocks else self._place == self._blocks
        self._block = Block(now_ns, self._effect.count, on=on, counts=self._counts())
        self._effect.switch(on=on)

    def _add(self, block: Block, records: Iterable[Record], named: Named) -> None:
        for start_ns, dur_ns, _, name, kind, flags, thread in records:
            if (kind, name, thread) == self._key and not flags & _OUT:
                self._last_ns = start_ns + dur_ns
                block.ends.append(self._last_ns)
            elif self._cuts(kind, name, flags, named):
                block.cuts.append(start_ns + dur_ns)

    def _cuts(self, kind: int, name: int, flags: int, named: Named) -> bool:
        """Whether a record is that of something which is no part of a step."""
        if kind == _NEXT:
            return bool(flags & _END)
        return kind in (_TRACE, _LOOP) or (kind == _HOOK and self._epoch(name, named))

    def _epoch(self, name: int, named: Named) -> bool:
        known = self._epochs.get(name)
        if known is None:
            known = self._epochs[name] = _EPOCH in str(named(name).get("hook", ""))
        return known

    def _counts(self) -> Counts:
        return self._delays.counts() if self._delays is not None else (0, 0, 0, 0)

    def _dropped_ns(self, block: Block, now_ns: int) -> int:
        """Where what counts of a block begins: behind a quarter; of delays, behind what was buffered and a step."""
        if self._delays is None or not block.ends:
            return block.at_ns + (now_ns - block.at_ns) // 4
        return block.ends[min(self._delays.buffered, len(block.ends) - 1)]

    def _taken(self, block: Block) -> int:
        """How often the intervention took hold in a block; one that is no matter of calls holds all the time."""
        if self._delays is not None:
            return self._counts()[1] - block.counts[1]
        taken = self._effect.count - block.count
        return max(1, taken) if block.on and self._effect.on_switch is not None else taken

    def _line(self, block: Block, now_ns: int) -> dict[str, object]:
        from_ns = self._dropped_ns(block, now_ns)
        times, kept_apart, lumps = _split(block, from_ns)
        half_ns = (from_ns + now_ns) // 2
        late = [ns for end, ns in times if end > half_ns]
        steps_ns = sum(ns for _, ns in times)
        self._means.append((block.on, steps_ns / len(times) if times else 0.0))
        line: dict[str, object] = {
            "t": "block",
            "at": block.at_ns,
            "dur_ns": now_ns - block.at_ns,
            "name": self._effect.name,
            "argument": self._effect.argument,
            "on": block.on,
            "long": self._place == self._blocks,
            "count": self._taken(block),
            "steps": len(times),
            "steps_ns": steps_ns,
            "late_steps": len(late),
            "late_ns": sum(late),
            "ends": len(kept_apart),
            "ends_ns": sum(kept_apart),
            "lumps": len(lumps),
            "lumps_ns": sum(lumps),
        }
        if self._delays is not None:
            calls, delayed, added_ns, place_ns = map(operator.sub, self._counts(), block.counts)
            line.update(all_steps=len(block.ends), calls=calls, delayed=delayed, added_ns=added_ns, place_ns=place_ns)
        return line


def far(blocks: list[tuple[bool, float]]) -> bool:
    """Whether blocks, (on, mean time of a step) each, are so far apart that more would not change the answer."""
    logs = []
    for first in range(0, len(blocks) - 1, 2):
        (on, one), (_, other) = blocks[first], blocks[first + 1]
        if one and other:
            logs.append(math.log(one / other) if on else math.log(other / one))
    if len(logs) < LEAST_PAIRS:
        return False
    middle = sum(logs) / len(logs)
    error = math.sqrt(sum((one - middle) ** 2 for one in logs) / (len(logs) - 1) / len(logs))
    return abs(middle) >= FAR * error + LEAST


def _split(block: Block, from_ns: int) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """(end and time of each step from ``from_ns`` on, times in which something else ended, times of long steps)."""
    cuts = sorted(block.cuts)
    times, apart, at = [], [], 0
    for place in range(1, len(block.ends)):
        before, end = block.ends[place - 1], block.ends[place]
        if before < from_ns:
            continue
        while at < len(cuts) and cuts[at] <= before:
            at += 1
        if at < len(cuts) and cuts[at] <= end:
            apart.append((end, end - before))
        else:
            times.append((end, end - before))
    if len(apart) > OFTEN * (len(times) + len(apart)):
        times, apart = sorted([*times, *apart]), []
    usual = sorted(ns for _, ns in times)[len(times) // 2] if times else 0
    return times, [ns for _, ns in apart], [ns for _, ns in times if ns > LUMP * usual]
