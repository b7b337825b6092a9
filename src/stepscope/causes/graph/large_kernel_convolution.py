"""Convolutions with a kernel so large that a stack of 3 x 3 convolutions sees as far for far less work.

A stack of n convolutions of 3 x 3 sees 2n + 1 positions each way. Both sides are counted in multiplications for each
position of the image, which follow from the shape of the kernel alone. Between the layers of the stack there are as
many channels as the wider of both ends: a convolution from three channels to many, or from many to three, is no less
work as a stack.

The sizes are those of a graph of TensorFlow, or of a compiled program (HLO) in an op trace, which JAX has too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace import compiled_ops
from stepscope.model.log.graph import attributes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.program_ops import Convolution, Frame

KIND = "Conv2D"
SMALL = 3
"""Size of the kernels of the stack."""
_RANK = 4
_ONES = ("strides", "dilations")
_CHANNELS = {"NHWC": 3, "NCHW": 1}
"""Dimension of an image that is its channels."""


class LargeKernel(Struct, frozen=True, kw_only=True):
    """A convolution."""

    row: int
    size: int
    """Positions of its kernel each way."""
    layers: int
    """Number of 3 x 3 convolutions that see as far."""
    left: float
    """Their multiplications, as a part of those of the convolution."""


class TracedKernel(Struct, frozen=True, kw_only=True):
    """A convolution of a compiled program, with its gradients."""

    size: int
    layers: int
    left: float
    """As in ``LargeKernel``."""
    ratio: float
    """Share of the traced steps that it takes."""
    frame: Frame | None
    """The line that it comes from."""


def of_programs(trace: OpView, most: float) -> tuple[TracedKernel, ...]:
    """The same of an op trace with its programs: one for each line and shape of kernel, the costliest first."""
    compiled = compiled_ops.build(trace.trace)
    rows, index = compiled.row, compiled.index
    events, wall_ns = trace.trace.events, float(trace.periods.dur_ns.sum())
    spent = intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], trace.periods.windows)
    per_op = np.bincount(index, weights=spent, minlength=len(compiled.ops))
    found: dict[tuple[Frame | None, tuple[int, ...]], TracedKernel] = {}
    for number in np.flatnonzero(per_op).tolist():
        one = compiled.ops[number]
        shape = _plain_kernel(one.op.convolution)
        stack = _stack(shape) if shape is not None else None
        if shape is None or stack is None or stack.left > most or not wall_ns:
            continue
        before = found.get((one.place, shape))
        ratio = float(per_op[number]) / wall_ns + (before.ratio if before is not None else 0.0)
        found[one.place, shape] = TracedKernel(
            size=stack.size, layers=stack.layers, left=stack.left, ratio=ratio, frame=one.place
        )
    return tuple(sorted(found.values(), key=lambda one: -one.ratio))


def _plain_kernel(one: Convolution | None) -> tuple[int, ...] | None:
    """Shape of the kernel, if it is square, of an odd size, and moves by one position and mixes all channels."""
    if one is None or not one.plain or len(one.kernel) != _RANK - 2:
        return None
    height, width = one.kernel
    return (height, width, one.taken, one.made) if height == width and height % 2 else None


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
            found = _stack(kernel)
            if found is not None:
                yield LargeKernel(row=row, size=found.size, layers=found.layers, left=found.left)


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


class _Stack(Struct, frozen=True, kw_only=True):
    size: int
    layers: int
    left: float


def _stack(kernel: tuple[int, ...]) -> _Stack | None:
    """The stack whose view is that of a kernel of this shape: height, width, channels taken and made."""
    size, _, taken, made = kernel
    layers = (size - 1) // (SMALL - 1)
    if layers <= 1 or min(taken, made) < 1:
        return None
    between = max(taken, made)
    work = SMALL**2 * between * (taken + (layers - 2) * between + made)
    return _Stack(size=size, layers=layers, left=work / (size**2 * taken * made))
