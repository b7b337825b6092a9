"""How many steps the first look takes: as many as its bound covers, by what a trace of one is expected to cost.

The job writes the trace; it is read after a short job's end. The sidecar's estimate (``sidecar.capture_size``)
rests on the graphs' nodes; here only their number is known.
"""

from __future__ import annotations

from stepscope.wire.kinds import Kind, Trait, kinds_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.graph_sizes import Size

EVENT_NS = 2_000
"""CPU time to write an event, with what steps are slower meanwhile. Source: ``sidecar.capture_size``, without the
reading."""
SLOW_RATIO = 0.03
"""Share by which a traced step is slower. Source: decision 0004, level 2."""
START_NS = 20_000_000
"""Cost of any trace, however few events it has."""
OP_NS = 2_400
"""Time per op where the number of ops is unknown. Measured in a loop of a GRU of 48 units, on two cores; an eager op
takes 4,400."""
EAGER_NS = 4_000
"""Time per event of a step that runs no graph of known size: 3,620 events in 16 ms."""
POOL_NS = 60_000
"""Time per event of thread pools on each core. Measured: 15 to 50 a millisecond on two cores."""
MAX_CORES = 8
RUN_EVENTS = 800
"""Events that cost as much as a full trace of a run does whatever it runs: 1 to 2 ms in a cluster
(docs/decisions/0014-captures.md)."""
MAX_STEPS = 10
RECORD_NS = 1_000_000_000
"""Longest that steps are recorded for: a job of three seconds should not be over before they are."""
DEAREST = 3
"""A single step may cost this multiple of what ten may."""
GRAPHS = frozenset(map(int, kinds_with(Trait.COMPILED)))


def events(kind: int, size: Size, step_ns: int, call_ns: int, cores: int) -> float:
    """Events of one step whose calls are of ``kind``, take ``call_ns`` and run graphs of ``size``."""
    if kind == Kind.SESSION_RUN:
        by_time = call_ns / OP_NS
        return RUN_EVENTS + (min(size.nodes, by_time) if size.nodes else by_time)
    pools = call_ns * min(max(1, cores), MAX_CORES) / POOL_NS
    if kind in GRAPHS and size.nodes and not size.loops:
        return size.nodes + pools
    if kind in GRAPHS:
        return max(size.nodes, call_ns / OP_NS) + pools
    return step_ns / EAGER_NS


def cost_ns(count: int, each_events: float, step_ns: int) -> int:
    """Expected cost of a trace of ``count`` whole steps: recording begins within one more."""
    return START_NS + int((count + 1) * (each_events * EVENT_NS + SLOW_RATIO * step_ns))


def steps(bound_ns: int, each_events: float, step_ns: int) -> int:
    """Number of steps to trace so that all cost ``bound_ns`` at most; 0: a single one is too dear."""
    most = max(1, min(MAX_STEPS, RECORD_NS // max(1, step_ns)))
    for count in range(most, 0, -1):
        if cost_ns(count, each_events, step_ns) <= bound_ns:
            return count
    return int(cost_ns(1, each_events, step_ns) <= DEAREST * bound_ns)
