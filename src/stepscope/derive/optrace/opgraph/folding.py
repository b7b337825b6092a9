"""A graph of ops with some of its groups opened: sums of what is folded, and the arrows that are left.

What can be seen are the ops and folded groups whose groups around them are all open. A folded group stands for
everything in it, so that the times of what can be seen always add up to those of all ops.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.optrace.opgraph.scopes import ROOT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stepscope.derive.optrace.opgraph.op_graph import OpGraph
    from stepscope.derive.optrace.opgraph.scopes import Scopes

SHOWN = 40
"""Ops and groups that are in view unless others are asked for."""
LEAST = 0.04
"""Share of the time from which a group is opened unasked."""
MOST_SHOWN = 3_000
"""Ops and groups that are laid out at most; further groups stay folded."""


class Item(Struct, frozen=True, kw_only=True):
    """An op or a group. Times ns, of the step: of a group those of all ops in it, open or not."""

    group: int
    """Number of the group; -1: an op."""
    node: int
    """Number of the op; -1: a group."""
    outer: int
    """The group that it lies in."""
    ops: int
    calls: int
    own_ns: int
    path_ns: int
    order: int
    """Position by first begin."""
    open: bool = False


class Arrow(Struct, kw_only=True):
    """What one item hands to another, in the innermost group that holds both."""

    source: int
    target: int
    tensors: set[tuple[int, int]]
    """Each once: node and output."""
    bytes: int = 0
    unknown: int = 0
    """Tensors of unknown size."""
    path_ns: int = 0
    """Time of the critical path in the ops that it leads to; 0: it is not on the path."""


class FoldedGraph(Struct, frozen=True, kw_only=True):
    """What is to be drawn."""

    items: tuple[Item, ...]
    """Groups before what they hold."""
    arrows: tuple[Arrow, ...]
    """By items, between two that lie in one group."""
    opened: frozenset[int]
    left_folded: int
    """Groups that were asked for and stayed folded, for there would be too much."""

    def visible(self) -> Iterator[Item]:
        """The ops and folded groups."""
        return (item for item in self.items if not item.open)


class Sums:
    """Times of all groups of a graph."""

    def __init__(self, graph: OpGraph, scopes: Scopes) -> None:
        size = len(scopes.groups)
        self.own_ns, self.path_ns, self.calls, self.ops = ([0] * size for _ in range(4))
        self.order = [len(graph.nodes)] * size
        for at, node in enumerate(graph.nodes):
            for group in (*scopes.around(scopes.of_op[at]), ROOT):
                self.own_ns[group] += node.own_ns
                self.path_ns[group] += node.path_ns
                self.calls[group] += node.calls
                self.ops[group] += 1
                self.order[group] = min(self.order[group], node.order)


def usual(scopes: Scopes, sums: Sums) -> frozenset[int]:
    """Groups that are open unless others are asked for: the longest ones down to layers, while that is legible."""
    opened = set[int]()
    shown = _members(scopes, ROOT)
    waiting = [(-sums.own_ns[group], group) for group in scopes.groups[ROOT].groups]
    heapq.heapify(waiting)
    least = LEAST * sums.own_ns[ROOT]
    while waiting:
        own, group = heapq.heappop(waiting)
        more = _members(scopes, group) - 1
        if -own < least or shown + more > SHOWN or not _holds_layers(scopes, group):
            continue
        opened.add(group)
        shown += more
        for inner in scopes.groups[group].groups:
            heapq.heappush(waiting, (-sums.own_ns[inner], inner))
    return frozenset(opened)


def _members(scopes: Scopes, group: int) -> int:
    return len(scopes.groups[group].groups) + len(scopes.groups[group].ops)


def _holds_layers(scopes: Scopes, group: int) -> bool:
    """Whether opening a group shows more than the ops of one layer."""
    if all(scopes.groups[one].kind != "layer" for one in scopes.around(group)):
        return True
    return any(scopes.groups[inner].kind == "layer" for inner in scopes.groups[group].groups)


def build(graph: OpGraph, scopes: Scopes, sums: Sums, opened: Collection[int]) -> FoldedGraph:
    """What is seen of a graph with these groups open. A group is only open if all groups around it are."""
    left = 0
    items: list[Item] = []
    of_group: dict[int, int] = {}
    of_node: dict[int, int] = {}
    accepted = set[int]()
    shown = _members(scopes, ROOT)
    waiting = [ROOT]
    for outer in waiting:
        for group in scopes.groups[outer].groups:
            more = _members(scopes, group)
            is_open = group in opened
            if is_open and shown + more > MOST_SHOWN:
                is_open, left = False, left + 1
            if is_open:
                shown += more
                accepted.add(group)
                waiting.append(group)
            of_group[group] = len(items)
            items.append(
                Item(
                    group=group,
                    node=-1,
                    outer=outer,
                    ops=sums.ops[group],
                    calls=sums.calls[group],
                    own_ns=sums.own_ns[group],
                    path_ns=sums.path_ns[group],
                    order=sums.order[group],
                    open=is_open,
                )
            )
        for at in scopes.groups[outer].ops:
            node = graph.nodes[at]
            of_node[at] = len(items)
            items.append(
                Item(
                    group=-1,
                    node=at,
                    outer=outer,
                    ops=1,
                    calls=node.calls,
                    own_ns=node.own_ns,
                    path_ns=node.path_ns,
                    order=node.order,
                )
            )
    chains = _chains(graph, scopes, of_group, of_node)
    arrows = _arrows(graph, chains)
    return FoldedGraph(items=tuple(items), arrows=arrows, opened=frozenset(accepted), left_folded=left)


def _chains(graph: OpGraph, scopes: Scopes, of_group: dict[int, int], of_node: dict[int, int]) -> list[tuple[int, ...]]:
    """For each op the items that hold it, from the outermost; the last is what is seen of it."""
    found = []
    for at in range(len(graph.nodes)):
        around = [of_group[group] for group in scopes.around(scopes.of_op[at]) if group in of_group]
        found.append((*reversed(around), *([of_node[at]] if at in of_node else [])))
    return found


def _arrows(graph: OpGraph, chains: list[tuple[int, ...]]) -> tuple[Arrow, ...]:
    found: dict[tuple[int, int], Arrow] = {}

    def between(source: int, target: int) -> Arrow | None:
        ends = next(((a, b) for a, b in zip(chains[source], chains[target], strict=False) if a != b), None)
        if ends is None:
            return None
        return found.setdefault(ends, Arrow(source=ends[0], target=ends[1], tensors=set()))

    linked: dict[tuple[int, int], int] = defaultdict(int)
    before = -1
    for part in graph.path:
        if part.node >= 0:
            if before >= 0:
                linked[before, part.node] += part.dur_ns
            before = part.node
    for tensor in graph.tensors:
        for taker in tensor.takers:
            arrow = between(tensor.source, taker)
            if arrow is None:
                continue
            if (tensor.source, tensor.slot) not in arrow.tensors:
                arrow.tensors.add((tensor.source, tensor.slot))
                arrow.bytes += tensor.bytes
                arrow.unknown += tensor.bytes == 0
            arrow.path_ns += linked.pop((tensor.source, taker), 0)
    return tuple(found.values())
