"""Shared by the detectors that find a pattern in the graph: an op trace says what the pattern costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.detectors.base import CaptureRequest, Seen, Signal, compute_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.optrace.shape_costs import ShapeCosts
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

NEARLY_ALL = 0.8
"""Share of the steps that have the same number of samples."""
LEAST_MODELLED = 0.03
"""Lower bound of a cost counted from shapes that makes a finding: that of one above information (decision 0003)."""
CONFIDENCE = 0.7
"""Of a cost counted from shapes."""
INSIDE = (
    "device-compute",
    "collective",
    "copy-to-device",
    "copy-from-device",
    "copy-on-device",
    "device-gap",
    "host-python",
    "host-compute",
    "device-wait",
    "launch",
    "runtime",
    "scheduling",
)
"""Parts of a traced step (``derive.optrace.steps.step_parts.PARTS``) that are in its call."""
MAX_PLACES = 4
"""Maximum number of lines in one finding."""


class Weight(Protocol):
    """Cost of a pattern: an ``OpShare``, or what a detector derives from it."""

    @property
    def ratio(self) -> float:
        """Share of the traced steps. It decides whether the pattern is a finding."""


class Saving(Struct, frozen=True, kw_only=True):
    """Part of the time of some ops that a remedy saves, with separate figures for estimate and bounds."""

    share: OpShare
    part: float
    """Best estimate of the saved part."""
    least: float
    """Lower end of the saved part."""
    most: float
    """Upper end of the saved part."""

    @property
    def ratio(self) -> float:
        """Share of the traced steps that is saved."""
        return self.part * self.share.ratio

    @property
    def low(self) -> float:
        """Lower end of ``ratio``."""
        return self.least * self.share.low

    @property
    def high(self) -> float:
        """Upper end of ``ratio``."""
        return self.most * self.share.high


F = TypeVar("F")
W = TypeVar("W", bound=Weight)


def price(
    view: SessionView,
    find: Callable[[GraphIndex], Sequence[F]],
    min_ratio: float,
    *,
    ask: Callable[[F], str],
    weigh: Callable[[NodeCosts, F], W],
    see: Callable[[NodeCosts, F, W], Seen],
) -> Iterator[Seen | CaptureRequest]:
    """Find a pattern in the graph and price it by an op trace.

    Args:
        view: The session.
        find: Patterns that the graph shows. Several are alternatives: only the costliest is reported.
        min_ratio: Share of the traced steps from which a pattern is a finding.
        ask: Without an op trace: what the first pattern is suspected of, "" where it is not worth a capture.
        weigh: What a pattern costs.
        see: The finding.

    Yields:
        The finding, or without an op trace the request for one.
    """
    found = find(view.graphs) if view.graphs is not None else ()
    if not found:
        return
    ops = view.node_costs
    if ops is None:
        if suspicion := ask(found[0]):
            yield _request(suspicion, compute_ratio(view))
        return
    weight, worst = max(((weigh(ops, one), one) for one in found), key=lambda weighed: weighed[0].ratio)
    if weight.ratio >= min_ratio:
        yield _of_steps(view, see(ops, worst, weight))


def _of_steps(view: SessionView, seen: Seen) -> Seen:
    """Rescale the cost to all steps: traced steps may lack the ends of epochs.

    What took a share of the traced steps takes the same share of the calls; at most all of it.
    """
    most, trace = compute_ratio(view) or 1.0, view.traces.main
    traced = trace.breakdown.ratio(*INSIDE) if trace is not None else 0.0
    part = min(1.0, most / traced) if traced > 0 else 1.0
    cost = seen.cost
    if part == 1.0 and cost.ratio <= most:
        return seen
    ratio = min(most, part * cost.ratio)
    ns = round(cost.ns_per_step * ratio / cost.ratio) if cost.ratio else 0
    high = max(ratio, min(most, cost.high))
    changed = replace(cost, ratio=ratio, low=min(ratio, part * cost.low), high=high, ns_per_step=ns)
    return replace(seen, cost=changed)


def price_work(
    view: SessionView,
    find: Callable[[GraphIndex], Sequence[F]],
    min_ratio: float,
    *,
    ask: Callable[[F], str],
    weigh: Callable[[OpCosts, F], W],
    see: Callable[[OpCosts, F, W], Seen],
) -> Iterator[Seen | CaptureRequest]:
    """Like ``price``, for patterns that are pure arithmetic: without an op trace, the cost is estimated from shapes.

    Such a cost is a finding if its lower bound is one; a capture is requested all the same.
    """
    if view.node_costs is not None:
        yield from price(view, find, min_ratio, ask=ask, weigh=weigh, see=see)
        return
    found = find(view.graphs) if view.graphs is not None else ()
    if not found:
        return
    ops = view.get(_counted)
    most = compute_ratio(view)
    if ops is not None and ops.known:
        weight, worst = max(((weigh(ops, one), one) for one in found), key=lambda weighed: weighed[0].ratio)
        seen = see(ops, worst, weight)
        most = min(most, seen.cost.high) or most
        if weight.ratio >= min_ratio and seen.cost.low >= LEAST_MODELLED:
            cost = replace(seen.cost, basis="modelled")
            yield replace(seen, cost=cost, confidence=min(seen.confidence, CONFIDENCE))
    if suspicion := ask(found[0]):
        yield _request(suspicion, most)


def _counted(view: SessionView) -> ShapeCosts | None:
    return view.shape_costs(samples(view))


def _request(suspicion: str, most: float) -> CaptureRequest:
    hint = f"{suspicion}; an op trace shows the cost: run stepscope trace JOB while it runs"
    return CaptureRequest(
        kind="ops",
        missing=Signal.OP_TRACE,
        hint=hint,
        suspicion=suspicion,
        suspected_ratio=most,
    )


def whole(find: Callable[[GraphIndex], F | None]) -> Callable[[GraphIndex], Sequence[F]]:
    """Treat the result of ``find`` as one pattern, however many parts it has."""

    def found(index: GraphIndex) -> Sequence[F]:
        every = find(index)
        return (every,) if every else ()

    return found


def samples(view: SessionView) -> int:
    """Samples of nearly every steady step, as the last of a pass may have fewer; 0: unknown, or steps differ."""
    if view.steps is None:
        return 0
    known, counts = np.unique(view.steps.samples[view.steps.steady], return_counts=True)
    most = int(counts.argmax()) if len(counts) else 0
    return int(known[most]) if len(known) and counts[most] >= NEARLY_ALL * counts.sum() else 0


def places(view: SessionView, index: GraphIndex, rows: Iterable[int]) -> tuple[Place, ...]:
    """Lines of user code that made some nodes, or else that built their layers, in order."""
    found: list[Place] = []
    for row in rows:
        line, layer = index.maker_of(row)
        if line is not None:
            found.append(view.place(line[0], line[2], function=line[1]))
        elif layer is not None and layer.line:
            found.append(view.place(layer.file, layer.line, function=layer.function))
    return tuple(dict.fromkeys(found))[:MAX_PLACES]
