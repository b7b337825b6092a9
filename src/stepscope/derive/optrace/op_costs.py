"""What the cost of some nodes is asked of: an op trace (``NodeCosts``), or without one the graph (``ShapeCosts``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.graph.independent_loops import LoopPart
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.trace_view import OpView


class OpCosts(Protocol):
    """Times of the nodes of the steps' graphs."""

    index: GraphIndex

    @property
    def trace(self) -> OpView | None:
        """The trace that they are from; None: they are counted from shapes."""

    @property
    def nodes(self) -> int:
        """Number of nodes whose time is known."""

    def of_nodes(self, rows: Iterable[int], *, gradients: bool = False) -> OpShare:
        """Share of these nodes of the steps; with ``gradients`` also of their gradients."""

    def of_loops(self, parts: Sequence[LoopPart], fixed_ns: int) -> OpShare:
        """Share of loops; ``beyond`` what their ops take longer than starting them, ``fixed_ns``."""

    def turns(self, rows: Iterable[int]) -> float:
        """Runs per step of the one of these nodes that runs most often; 0: none does."""

    def costliest(self, rows: Iterable[int]) -> list[int]:
        """Those of the given nodes that ran, by their time, longest first."""
