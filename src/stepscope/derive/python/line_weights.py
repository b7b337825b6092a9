"""The lines of a function that a finding marks: the fewest that have more than half of its sampled time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HALF = 0.5


def ranked(weights: Iterable[tuple[int, int]]) -> Counter[int]:
    """Time of each line, ns, from pairs of a line and the time of one sample; without lines that are not known."""
    spent: Counter[int] = Counter()
    for line, weight in weights:
        if line > 0:
            spent[line] += weight
    return spent


def most(spent: Counter[int]) -> tuple[int, ...]:
    """The fewest lines that have more than half of the time, the costliest first."""
    found: list[int] = []
    left = spent.total() * HALF
    for line, weight in spent.most_common():
        found.append(line)
        left -= weight
        if left < 0:
            break
    return tuple(found)
