"""Dimensions of tensors as parts, some of which are copies: in ``tf.repeat(x, 5)`` each element stands five times.

The parts of a dimension stand the outermost first, and their sizes multiply to its own.

Serves copied_axes and wasteful_operands.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable


class AxisPart(Struct, frozen=True):
    """Part of a dimension."""

    size: int
    """``UNKNOWN``: not known."""
    maker: int = NOT_FOUND
    """Row of the node that made copies along it; ``NOT_FOUND``: its elements may differ."""

    @property
    def copied(self) -> bool:
        """Whether all elements along it are equal."""
        return self.maker != NOT_FOUND


Key = tuple[int, int]
"""A tensor: row of its node, and which of its outputs."""
Axis = tuple[AxisPart, ...]
"""A dimension; empty: one element."""
Axes = tuple[Axis, ...]


def copies(axes: Axes) -> tuple[AxisPart, ...]:
    """The parts of a tensor's dimensions that are copies."""
    return tuple(part for axis in axes for part in axis if part.copied)


def regrouped(axes: Axes, plain: Axes) -> Axes | None:
    """The parts of a tensor in another shape of the same elements; None if the sizes leave it open."""
    parts = [part for axis in axes for part in axis]
    wanted = [axis for axis in plain if axis]
    own = [axis for axis in axes if axis]
    if [size_of(axis) for axis in own] == [size_of(axis) for axis in wanted]:
        given = iter(own)
        return tuple(next(given) if axis else () for axis in plain)
    front: list[Axis] = []
    back: list[Axis] = []
    sizes = [size_of(axis) for axis in wanted]
    while sizes and sizes[0] != UNKNOWN and (taken := _take(parts, sizes[0], last=False)) is not None:
        front.append(taken)
        sizes.pop(0)
    while sizes and sizes[-1] != UNKNOWN and (taken := _take(parts, sizes[-1], last=True)) is not None:
        back.insert(0, taken)
        sizes.pop()
    if len(sizes) == 1:
        front.append(tuple(parts))
    elif sizes:
        return None
    given = iter([*front, *back])
    return tuple(next(given) if axis else () for axis in plain)


def _take(parts: list[AxisPart], size: int, *, last: bool) -> Axis | None:
    """Take parts of this size in all off one end; None, and nothing is taken, if no parts have it."""
    taken: list[AxisPart] = []
    left, rest = size, list(parts)
    while left > 1:
        part = rest.pop(-1 if last else 0) if rest else None
        if part is None or part.size <= 0 or (left % part.size and part.size % left):
            return None
        if part.size > left:
            over = AxisPart(part.size // left, part.maker)
            rest.insert(len(rest) if last else 0, over)
            part = AxisPart(left, part.maker)
        taken.insert(0 if last else len(taken), part)
        left //= part.size
    parts[:] = rest
    return tuple(taken)


def size_of(axis: Axis) -> int:
    """The size of a dimension; ``UNKNOWN`` if that of a part is."""
    return UNKNOWN if any(part.size == UNKNOWN for part in axis) else prod(part.size for part in axis)


def joined(every: Iterable[Axes | None], plain: Axes) -> Axes | None:
    """The dimensions of an op of each element: copies only where all of its inputs are copies, or have one element."""
    aligned = []
    for axes in every:
        if axes is None or len(axes) > len(plain):
            return None
        aligned.append(((),) * (len(plain) - len(axes)) + axes)
    return tuple(together([axes[i] for axes in aligned], axis) for i, axis in enumerate(plain))


def together(every: Iterable[Axis], plain: Axis) -> Axis:
    """One dimension of an op of each element, from those of its inputs; ``plain``: as its shape shows it."""
    large = [axis for axis in every if axis]
    if not large or not plain:
        return plain if not plain else ()
    if all(part.copied for axis in large for part in axis):
        own = size_of(large[0])
        return large[0] if own in {size_of(plain), UNKNOWN} else (AxisPart(size_of(plain), large[0][0].maker),)
    differing = [axis for axis in large if not all(part.copied for part in axis)]
    sizes = {tuple(part.size for part in axis) for axis in differing}
    if len(sizes) != 1 or size_of(differing[0]) not in {size_of(plain), UNKNOWN}:
        return plain
    return tuple(
        differing[0][i] if all(axis[i].copied for axis in differing) else AxisPart(differing[0][i].size)
        for i in range(len(differing[0]))
    )


def leading(first: Axes, plain: Axes, count: int) -> Axes | None:
    """The first ``count`` dimensions are those of the input."""
    return (*first[:count], *plain[count:]) if 0 <= count <= min(len(first), len(plain)) else None
