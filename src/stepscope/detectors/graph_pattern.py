"""What detectors that find a pattern in the graph have in common: an op trace says what the pattern costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from stepscope.detectors.base import CaptureRequest, Seen, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.view import SessionView
    from stepscope.model.report.finding import Place

MAX_PLACES = 4
"""Lines in one finding."""


class Weight(Protocol):
    """What a pattern costs: an ``OpShare``, or what a detector makes of it."""

    @property
    def ratio(self) -> float:
        """Share of the traced steps. It decides whether the pattern is a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a remedy saves of the time of some ops: each part of the measured share is a figure of its own."""

    share: OpShare
    part: float
    """Best guess of the saved part."""
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
            hint = f"an op trace shows {suspicion}: run stepscope trace JOB while it runs"
            yield CaptureRequest(kind="ops", missing=Signal.OP_TRACE, hint=hint)
        return
    weight, worst = max(((weigh(ops, one), one) for one in found), key=lambda weighed: weighed[0].ratio)
    if weight.ratio >= min_ratio:
        yield see(ops, worst, weight)


def whole(find: Callable[[GraphIndex], F | None]) -> Callable[[GraphIndex], Sequence[F]]:
    """What ``find`` finds is one pattern, however many parts it has."""

    def found(index: GraphIndex) -> Sequence[F]:
        every = find(index)
        return (every,) if every else ()

    return found


def places(view: SessionView, index: GraphIndex, rows: Iterable[int]) -> tuple[Place, ...]:
    """The lines of user code that made some nodes, else those that built their layers; the first ones first."""
    found: list[Place] = []
    for row in rows:
        line, layer = index.maker_of(row)
        if line is not None:
            found.append(view.place(line[0], line[2], function=line[1]))
        elif layer is not None and layer.line:
            found.append(view.place(layer.file, layer.line, function=layer.function))
    return tuple(dict.fromkeys(found))[:MAX_PLACES]
