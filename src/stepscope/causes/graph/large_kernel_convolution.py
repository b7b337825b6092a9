"""Convolutions with a kernel so large that a stack of 3 x 3 convolutions sees as far for far less work.

A stack of n convolutions of 3 x 3 sees 2n + 1 positions each way. Both sides are counted in multiplications for each
position of the image, which follow from the shape of the kernel alone. Between the layers of the stack there are as
many channels as the wider of both ends: a convolution from three channels to many, or from many to three, is no less
work as a stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import attributes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex

KIND = "Conv2D"
SMALL = 3
"""Size of the kernels of the stack."""
_RANK = 4
_ONES = ("strides", "dilations")
_CHANNELS = {"NHWC": 3, "NCHW": 1}
"""Dimension of an image that is its channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeKernel:
    """A convolution."""

    row: int
    size: int
    """Positions of its kernel each way."""
    layers: int
    """Number of 3 x 3 convolutions that see as far."""
    left: float
    """Their multiplications, as a part of those of the convolution."""


def build(index: GraphIndex, most: float) -> tuple[LargeKernel, ...]:
    """Convolutions of the steps' graphs whose stack takes at most ``most`` of the multiplications."""
    return tuple(one for one in _all(index) if one.left <= most)


def _all(index: GraphIndex) -> Iterator[LargeKernel]:
    table = index.table
    for row in table.of_types(KIND).tolist():
        if index.of_data(int(table.graph[row])) or index.is_gradient(row):
            continue
        inputs = zip(table.inputs_of(row).tolist(), table.slots_of(row).tolist(), strict=True)
        image, kernel, *_ = (*(_shape(index, at, slot) for at, slot in inputs), None, None)
        if image is not None and kernel is not None and _is_plain(index, row, image, kernel):
            found = _stack(row, kernel)
            if found is not None:
                yield found


def _shape(index: GraphIndex, row: int, slot: int) -> tuple[int, ...] | None:
    specs = index.table.specs_of(row) if row != NOT_FOUND else ()
    shape = specs[slot].shape if slot < len(specs) else None
    return shape if shape is not None and len(shape) == _RANK else None


def _is_plain(index: GraphIndex, row: int, image: tuple[int, ...], kernel: tuple[int, ...]) -> bool:
    """Whether it moves by one position and mixes all channels: other ones skip work that the stack would not."""
    attributes = msgspec.json.decode(attributes_of(index.table, row) or "{}")
    channels = image[_CHANNELS.get(attributes.get("data_format", "NHWC"), 3)]
    plain = all(set(attributes.get(name) or [1]) == {1} for name in _ONES)
    return plain and kernel[0] == kernel[1] and kernel[0] % 2 == 1 and kernel[2] == channels


def _stack(row: int, kernel: tuple[int, ...]) -> LargeKernel | None:
    size, _, taken, made = kernel
    layers = (size - 1) // (SMALL - 1)
    if layers <= 1 or min(taken, made) < 1:
        return None
    between = max(taken, made)
    work = SMALL**2 * between * (taken + (layers - 2) * between + made)
    return LargeKernel(row=row, size=size, layers=layers, left=work / (size**2 * taken * made))
