"""The function of the user's that most of the time of some stacks is in, with what it calls: where to change something.

From the outside inwards, as long as one function has most of what the one around it has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python import line_weights, stack_samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.python.stack_samples import Spot

MOST = 0.5
MIN_SAMPLES = 8
"""Fewer are too few to name a function."""

Path = tuple["Spot", ...]
"""The user's frames of a stack, outermost first, each function once."""


class Function(Struct, frozen=True, kw_only=True):
    """A function of the user's, with what it calls."""

    file: str
    function: str
    lines: tuple[int, ...]
    """The fewest lines that have most of its time, the costliest first."""
    entry: Spot
    """The outermost of the functions on the way to it, at its most sampled line."""
    members: tuple[int, ...]
    """Numbers of the stacks that it is on."""
    weight_ns: int

    @property
    def key(self) -> tuple[str, str]:
        """File and function."""
        return self.file, self.function


def path(frames: Iterable[Spot]) -> Path:
    """The user's frames among some, outermost first; a comprehension is a part of the function around it, and a
    function that calls itself is there once.
    """
    found: dict[tuple[str, str], Spot] = {}
    for frame in frames:
        if frame.own:
            found[frame.file, stack_samples.plain(frame.function)] = frame
    return tuple(found.values())


def find(stacks: Sequence[tuple[int, Path]], least: float) -> Function | None:
    """The innermost function that most of the time is in; None if the outermost has less than ``least``, ns, or few
    samples. ``stacks``: weight in ns and the user's frames of each.
    """
    inside, entries = list(range(len(stacks))), list[Path]()
    depth = 0
    while True:
        under = _most(stacks, inside, depth)
        weight = sum(stacks[number][0] for number in under)
        if len(under) < MIN_SAMPLES or weight < least:
            break
        inside, depth = under, depth + 1
        entries = entries or [stacks[number][1] for number in inside]
        least = max(least, MOST * weight)
    if not depth:
        return None
    here = [stacks[number][1][depth - 1] for number in inside]
    lines = line_weights.ranked((spot.line, stacks[number][0]) for number, spot in zip(inside, here, strict=True))
    first = Counter(frames[0].line for frames in entries).most_common(1)[0][0]
    return Function(
        file=here[0].file,
        function=stack_samples.plain(here[0].function),
        lines=line_weights.most(lines) or (here[0].line,),
        entry=next(frames[0] for frames in entries if frames[0].line == first),
        members=tuple(inside),
        weight_ns=sum(stacks[number][0] for number in inside),
    )


def _most(stacks: Sequence[tuple[int, Path]], inside: Sequence[int], depth: int) -> list[int]:
    """The stacks of the function that has most of the time at a depth."""
    deep = [number for number in inside if depth < len(stacks[number][1])]
    spent: Counter[tuple[str, str]] = Counter()
    for number in deep:
        spent[_key(stacks[number][1][depth])] += stacks[number][0]
    most = next(iter(spent.most_common(1)), (None, 0))[0]
    return [number for number in deep if _key(stacks[number][1][depth]) == most]


def _key(spot: Spot) -> tuple[str, str]:
    return spot.file, stack_samples.plain(spot.function)
