"""A convolution with a large kernel takes much of the step; small kernels in a row see as far for far less work.

## What it detects
Convolutions of the compiled step, with a stride of one and all channels mixed, whose kernel is so large that a stack of
3 x 3 convolutions which sees as many positions needs less than half of the multiplications, and which take a large part
of the step. Without a graph of TensorFlow: those of the compiled programs (HLO) in an op trace, with the time of the
kernels that name them, as JAX's profiles have both.

## Why it matters
The work of a convolution grows with the area of its kernel: 11 x 11 is 121 multiplications for each pair of channels
and each position, five times 3 x 3 is 45. What the kernel sees is the same, and the stack has more steps between which
it can bend.

## Evidence
From the graph, or the compiled program: `kernel`, positions of the largest kernel each way; `left_ratio`, the stack's
share of the multiplications. From an op trace: `convolution_ratio`, share of the steps in these convolutions and their
gradients.

Measured: TensorFlow 2.21, one of nine convolutions of a segmentation network with 11 x 11 in place of 3 x 3: CPU time
of a sample 1.27 times as long (bench/rand). JAX on an H100, a wider such network: a step takes 1.76 times as long, and
46 % of it is that convolution with its gradients (docs/benchmarks/gpu.md).

## Known limits
The model is another one with small kernels: whether it learns as much is for its author to find out. The cost is
modelled by counting multiplications; small convolutions run less efficiently than large ones. Convolutions with
strides, dilations or groups, depthwise ones, and those from or to few channels (the first and the last layer) are not
meant: there, large kernels are cheap.

## Remedy
3 x 3 convolutions in a row, as many as see as far; a depthwise convolution with the large kernel; or a smaller kernel
at a coarser level of the network.

## References
Simonyan and Zisserman, "Very Deep Convolutional Networks", ICLR 2015, section 2.3; training-pipeline analysis (Rand
2020), inefficient graph; FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import large_kernel_convolution
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.large_kernel_convolution import LargeKernel, TracedKernel
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

LEAST = 0.5
"""Part of the saving that is certain: small convolutions run less efficiently."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Share of the traced steps that the stacks save."""
    max_left: Ratio = Ratio(0.5)
    """Share of the multiplications: 7 x 7, as many tuned networks have it, is above it."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of all of them."""

    share: OpShare
    largest: LargeKernel
    ratio: float
    """Share of the steps that the stacks save."""
    most: float
    """Share of all convolutions with kernels as large: a smaller kernel helps those too whose stack would not."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all such convolutions of a step."""
    if view.graphs is None:
        yield from _of_programs(view, params)
        return
    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(lambda index: large_kernel_convolution.build(index, params.max_left)),
        params.min_ratio,
        ask=lambda found: f"a convolution has a kernel of {found[0].size} x {found[0].size}",
        weigh=_cost,
        see=lambda ops, found, cost: _finding(view, ops, found, cost, params),
    )


def _of_programs(view: SessionView, params: Params) -> Iterator[Seen]:
    trace = view.traces.main
    found = large_kernel_convolution.of_programs(trace, params.max_left) if trace is not None else ()
    saved = sum(one.ratio * (1 - one.left) for one in found)
    if trace is None or saved < params.min_ratio:
        return
    share, largest = sum(one.ratio for one in found), found[0]
    alike = large_kernel_convolution.of_programs(trace, math.inf)
    least = min(one.size for one in found)
    yield Seen(
        title=_title(len(found), largest, share),
        confidence=0.75,
        where=_lines(view, found),
        evidence=(
            trace_evidence.evidence(trace, "convolution_ratio", share, "ratio"),
            *_figures(largest, saved, params),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(
            view, saved, low=LEAST * saved, high=sum(one.ratio for one in alike if one.size >= least), basis="modelled"
        ),
        remedies=(_remedy(largest),),
        explanation="The compiled program in the trace shows the kernel's shape; the trace shows the time of the "
        "convolution and of its gradients. What the stack saves is counted in multiplications.",
    )


def _lines(view: SessionView, found: Sequence[TracedKernel]) -> tuple[Place, ...]:
    frames = dict.fromkeys(one.frame for one in found if one.frame is not None)
    return tuple(view.place(one.file, one.line, function=one.function) for one in frames)[: graph_pattern.MAX_PLACES]


def _title(count: int, largest: LargeKernel | TracedKernel, share: float) -> str:
    many = f"{count} convolutions with kernels of up to" if count > 1 else "a convolution with a kernel of"
    take = "take" if count > 1 else "takes"
    return (
        f"{many} {largest.size} x {largest.size} {take} {format_ratio(share)} of the step; {_stack(largest)} see as "
        f"far for {format_ratio(largest.left)} of the work"
    )


def _stack(largest: LargeKernel | TracedKernel) -> str:
    size = large_kernel_convolution.SMALL
    return f"{largest.layers} convolutions of {size} x {size}"


def _figures(largest: LargeKernel | TracedKernel, saved: float, params: Params) -> tuple[Evidence, ...]:
    return (
        Evidence(metric="saved_ratio", value=saved, unit="ratio", threshold=params.min_ratio),
        Evidence(metric="kernel", value=largest.size, unit="positions"),
        Evidence(metric="left_ratio", value=largest.left, unit="ratio", threshold=params.max_left),
    )


def _remedy(largest: LargeKernel | TracedKernel) -> Remedy:
    return Remedy(
        id="small-kernels",
        text=f"use {_stack(largest)} in a row, which see as far; or a smaller kernel at a coarser level; or the large "
        "kernel in a depthwise convolution: the model is another one, so compare what it learns",
        safety="review",
    )


def _cost(ops: OpCosts, found: Sequence[LargeKernel]) -> _Cost:
    each = [ops.of_nodes([one.row], gradients=True).ratio for one in found]
    least = min(one.size for one in found)
    alike = [one.row for one in large_kernel_convolution.build(ops.index, math.inf) if one.size >= least]
    return _Cost(
        share=ops.of_nodes([one.row for one in found], gradients=True),
        most=ops.of_nodes(alike, gradients=True).high,
        largest=found[each.index(max(each))],
        ratio=sum(ratio * (1 - one.left) for ratio, one in zip(each, found, strict=True)),
    )


def _finding(view: SessionView, ops: OpCosts, found: Sequence[LargeKernel], cost: _Cost, params: Params) -> Seen:
    share, largest = cost.share, cost.largest
    saved = min(cost.ratio, share.high)
    part = saved / share.ratio if share.ratio else 0.0
    return Seen(
        title=_title(len(found), largest, share.ratio),
        confidence=0.75,
        where=graph_pattern.places(view, ops.index, [one.row for one in found]),
        evidence=(
            trace_evidence.evidence(ops.trace, "convolution_ratio", share.ratio, "ratio"),
            *_figures(largest, saved, params),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, saved, low=LEAST * share.low * part, high=cost.most, basis="modelled"),
        remedies=(_remedy(largest),),
        explanation="The graph shows the kernel's shape; the op trace shows the time of the convolution and of its "
        "gradients. What the stack saves is counted in multiplications.",
    )


DETECTOR = Detector(
    code="GRF022",
    name="large-kernel-convolution",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    instead=frozenset({Signal.PROGRAMS}),
    params=Params(),
    detect=detect,
)
