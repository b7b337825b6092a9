"""Whether the parameters of a step came in the order in which its ops need them, and what another order would gain.

How urgent a transfer is says the longest chain of work that follows from it to the end of the step, ops on other tasks
and what they receive included. One that came before a more urgent one of the same link, while both were on their way,
was out of order.

The gain of the best order is the difference of two computed ends of the step, at which every op takes as long as it
took and begins as soon as its inputs are there: with the transfers as they came, and with the most urgent always sent
first at the link's rate (``best_order``). It is at most the time in which no op ran on the device while something that
it lacked was on its way, as all that another order can do is to fill that time. TensorFlow sends parameters in the
order in which its executor happens to start the ops that read them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.exchange import best_order, step_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.optrace.exchange.step_graph import Node, StepGraph
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

MOST_RUNS = 10
"""Most runs that are examined, the first ones: the order of one graph is nearly the same in all."""
LEAST_SHARE = 0.01
"""Share of the bytes of its link from which a transfer can be out of order: smaller ones delay nothing."""


class Parameter(Struct, frozen=True, kw_only=True):
    """What a device received in each run: the mean. Times ns since the device's first event of the run."""

    name: str
    """Name of the op that sent it, which for a variable is the one that reads it."""
    sender: str
    """Task: ``/job:ps/replica:0/task:0``."""
    size_bytes: int
    needed_ns: float
    """When the op that needs it had its other inputs."""
    came_ns: float
    waited_ns: float
    """Time from needed to came; 0 if it came before."""
    after_ns: float
    """Time of the longest chain of work after it."""
    early: int
    """Number of runs in which it came before a more urgent one."""


class DeviceTransfers(Struct, frozen=True, kw_only=True):
    """The transfers to the device that computes."""

    device: str
    runs: int
    parameters: tuple[Parameter, ...]
    """The most urgent first; without those below ``LEAST_SHARE``."""
    small: int
    """Number of transfers left out of ``parameters``."""
    early: float
    """Mean number of transfers that came before a more urgent one."""
    still_ns: float
    """Time in which no op ran, and an op had all but what was on its way: the mean run."""
    run_ns: float
    """The mean run of the device."""
    gains_ns: tuple[float, ...]
    """By how much each run would end earlier in the best order, at most."""

    @property
    def gain_ns(self) -> float:
        """The median of ``gains_ns``."""
        return float(np.median(self.gains_ns))


class _Transfer(Struct, frozen=True, kw_only=True):
    key: tuple[str, str]
    node: Node
    needed_ns: int
    after_ns: int
    early: bool
    small: bool


class _Run(Struct, frozen=True, kw_only=True):
    transfers: tuple[_Transfer, ...]
    first_ns: int
    still_ns: int
    run_ns: int
    gain_ns: float


def build(trace: OpTrace) -> DeviceTransfers | None:
    """The order of the transfers to the device whose ops take the most time; None if fewer than two came."""
    graphs = list(step_graph.build(trace, MOST_RUNS))
    if not graphs:
        return None
    plane = _busiest(graphs)
    runs = [run for run in (_run(graph, plane) for graph in graphs) if run is not None]
    if not runs:
        return None
    found: dict[tuple[str, str], list[tuple[_Transfer, int]]] = defaultdict(list)
    for run in runs:
        for one in run.transfers:
            found[one.key].append((one, run.first_ns))
    large = [_mean(key, seen) for key, seen in found.items() if not seen[0][0].small]
    if len(large) <= 1:
        return None
    return DeviceTransfers(
        device=trace.planes[plane].name,
        runs=len(runs),
        parameters=tuple(sorted(large, key=lambda one: -one.after_ns)),
        small=len(found) - len(large),
        early=sum(one.early for run in runs for one in run.transfers) / len(runs),
        still_ns=sum(run.still_ns for run in runs) / len(runs),
        run_ns=sum(run.run_ns for run in runs) / len(runs),
        gains_ns=tuple(run.gain_ns for run in runs),
    )


def _busiest(graphs: Sequence[StepGraph]) -> int:
    """The plane that received something and whose ops take the most time."""
    total: dict[int, int] = defaultdict(int)
    for graph in graphs:
        there = {graph.nodes[v].plane for v in graph.transfers}
        for node in graph.nodes:
            if node.plane in there:
                total[node.plane] += 0 if node.link is not None else node.dur_ns
    return max(total, key=lambda plane: total[plane])


def _mean(key: tuple[str, str], seen: Sequence[tuple[_Transfer, int]]) -> Parameter:
    count = len(seen)
    return Parameter(
        name=key[1],
        sender=key[0],
        size_bytes=round(sum(one.node.size_bytes for one, _ in seen) / count),
        needed_ns=sum(one.needed_ns - first for one, first in seen) / count,
        came_ns=sum(one.node.end_ns - first for one, first in seen) / count,
        waited_ns=sum(max(0, one.node.end_ns - one.needed_ns) for one, _ in seen) / count,
        after_ns=sum(one.after_ns for one, _ in seen) / count,
        early=sum(one.early for one, _ in seen),
    )


def _run(graph: StepGraph, plane: int) -> _Run | None:
    mine = [v for v in graph.transfers if graph.nodes[v].plane == plane]
    ops = [node for node in graph.nodes if node.plane == plane and node.link is None]
    if not mine or not ops:
        return None
    after = _after(graph)
    there = [node for node in graph.nodes if node.plane == plane]
    first, last = min(node.start_ns for node in there), max(node.end_ns for node in there)
    links: dict[tuple[str, str], list[int]] = defaultdict(list)
    for v in mine:
        links[graph.nodes[v].link or ("", "")].append(v)
    early = {v for link in links.values() for v in _early(graph, link, after)}
    small = {v for link in links.values() for v in _small(graph, link)}
    needed = _needed(graph, mine, after, first)
    still = _still(ops, [(needed[v], graph.nodes[v].end_ns) for v in mine])
    as_came = max(graph.nodes[v].end_ns + after[v] for v in mine)
    best = max(
        came + after[v] for link in links.values() for v, came in zip(link, _best(graph, link, after), strict=True)
    )
    alone = first + _without(graph, mine)
    gain = max(0.0, min(max(as_came, alone) - max(best, alone), float(still)))
    return _Run(
        transfers=tuple(
            _Transfer(
                key=((graph.nodes[v].link or ("", ""))[0], graph.nodes[v].name),
                node=graph.nodes[v],
                needed_ns=needed[v],
                after_ns=after[v],
                early=v in early,
                small=v in small,
            )
            for v in mine
        ),
        first_ns=first,
        still_ns=still,
        run_ns=last - first,
        gain_ns=gain,
    )


def _after(graph: StepGraph) -> list[int]:
    """Time of the longest chain after each node."""
    after = [0] * len(graph.nodes)
    for v in reversed(graph.order):
        after[v] = max((graph.nodes[w].dur_ns + after[w] for w in graph.outputs[v]), default=0)
    return after


def _without(graph: StepGraph, transfers: Sequence[int]) -> int:
    """Time of the longest chain without any of these transfers: no order makes the run shorter."""
    dropped = set(transfers)
    until = [0] * len(graph.nodes)
    for v in graph.order:
        if v not in dropped:
            until[v] = graph.nodes[v].dur_ns + max((until[u] for u in graph.inputs[v]), default=0)
    return max(until)


def _best(graph: StepGraph, link: Sequence[int], after: Sequence[int]) -> list[float]:
    nodes = [(graph.nodes[v], after[v]) for v in link]
    return best_order.arrivals(
        [
            best_order.Sent(start_ns=node.start_ns, end_ns=node.end_ns, size_bytes=node.size_bytes, after_ns=tail)
            for node, tail in nodes
        ]
    )


def _small(graph: StepGraph, link: Sequence[int]) -> list[int]:
    total = sum(graph.nodes[v].size_bytes for v in link)
    return [v for v in link if graph.nodes[v].size_bytes < LEAST_SHARE * total or not graph.nodes[v].size_bytes]


def _early(graph: StepGraph, link: Sequence[int], after: Sequence[int]) -> list[int]:
    """Transfers that came before a more urgent one of the link that was on its way too."""
    small = set(_small(graph, link))
    nodes = graph.nodes
    return [
        v
        for v in link
        if v not in small
        and any(
            after[w] > after[v] and nodes[w].end_ns > nodes[v].end_ns and nodes[w].start_ns < nodes[v].end_ns
            for w in link
        )
    ]


def _needed(graph: StepGraph, transfers: Sequence[int], after: Sequence[int], first_ns: int) -> dict[int, int]:
    """When each would have been used, had it been there.

    That is when the next op with an input that is not made of transfers and constants alone had that input; on the way
    to it, the longest chain is followed.
    """
    received = set(transfers)
    constant = [False] * len(graph.nodes)
    """Made of transfers and constants alone."""
    for v in graph.order:
        inputs, node = graph.inputs[v], graph.nodes[v]
        made_of = bool(inputs) and not node.fed and all(constant[u] for u in inputs)
        constant[v] = v in received or node.constant or made_of
    needed = {}
    for v in transfers:
        at, needed[v] = v, first_ns
        while used := [w for w in graph.outputs[at] if graph.nodes[w].plane == graph.nodes[v].plane]:
            at = max(used, key=lambda w: graph.nodes[w].dur_ns + after[w])
            made = [graph.nodes[u].end_ns for u in graph.inputs[at] if not constant[u]]
            if made or graph.nodes[at].fed:
                needed[v] = max(made, default=first_ns)
                break
    return needed


def _still(ops: Sequence[Node], lacked: Sequence[tuple[int, int]]) -> int:
    """Time in which something was lacked and no op ran."""
    waiting = _merged([(begin, end) for begin, end in lacked if end > begin])
    return intervals.total(intervals.without(waiting, _merged([(node.start_ns, node.end_ns) for node in ops])))


def _merged(pairs: Sequence[tuple[int, int]]) -> tuple[I64, I64]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return intervals.merge(both[:, 0].copy(), both[:, 1].copy())
