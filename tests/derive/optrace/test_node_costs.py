"""What nodes of graphs cost, by an op trace."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker
from tests.detectors.graph_jobs import read, running
from tests.detectors.traced_jobs import holding

from stepscope.derive.optrace.node_costs import EVENT_NS, NodeCosts, OpShare

STALLED = (2, 5, 8)


def test_a_moment_that_others_share_counts_half() -> None:
    """Ops beside others cost between nothing and all of that time."""
    tables = Tables()
    node = tables.graph().op("model/MatMul", "MatMul")
    view = running(tables, ("model/MatMul:MatMul", 40_000), beside=20_000).view()
    assert view.node_costs is not None
    assert view.graphs is not None
    share = view.node_costs.of_nodes([view.graphs.node_of(node.name)])
    assert isinstance(share, OpShare)
    assert (share.low, share.ratio, share.high) == pytest.approx((0.2, 0.3, 0.4), abs=0.001)
    assert share.calls_per_step == 1


@pytest.mark.parametrize(("stalls", "busy", "expected"), [(1, 0, 0.5), (3, 0, 0.032), (1, 8, 0.085)])
def test_a_single_stall_is_no_step(stalls: int, busy: int, expected: float) -> None:
    """One of ten steps in which the job stood still says nothing of the others; several do, and one that worked."""
    made, tables = Maker(), Tables()
    node, pool, at = tables.graph().op("model/MatMul", "MatMul"), made.thread("tf_Compute"), 0.0
    for i in range(10):
        length = 50_000.0 if i in STALLED[:stalls] else 1_000.0
        made.step(at, length - 1, i)
        made.op(pool, "model/MatMul:MatMul", at + 10, 500)
        if length > 1_000.0 and busy:
            made.op(pool, "other:Conv2D", at + 1_000, busy * 1_000)
        at += length
    job = holding(made.trace())
    read(job, tables)
    view = job.view()
    assert view.node_costs is not None
    assert view.graphs is not None
    assert view.node_costs.of_nodes([view.graphs.node_of(node.name)]).low == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("slowed", "low", "high"), [(0.0, 0.2, 0.4), (0.25, 0.0, 0.5), (-0.1, 0.2, 0.4), (9e9, 0.0, 1.0)]
)
def test_what_tracing_added_is_in_the_bounds(slowed: float, low: float, high: float) -> None:
    """Steps that are a quarter longer when traced: a fifth of their time may be these ops' alone, or others'."""
    tables = Tables()
    node = tables.graph().op("model/MatMul", "MatMul")
    view = running(tables, ("model/MatMul:MatMul", 40_000), beside=20_000).view()
    trace, graphs = view.traces.main, view.graphs
    assert trace is not None
    assert graphs is not None
    share = NodeCosts(trace, graphs, slowed).of_nodes([graphs.node_of(node.name)])
    assert (share.low, share.ratio, share.high) == pytest.approx((low, 0.3, high), abs=0.001)


def test_events_tell_what_an_uncompared_capture_added() -> None:
    """A capture too short to compare: so much for each of its events."""
    made, tables = Maker(), Tables()
    node, pool = tables.graph().op("model/MatMul", "MatMul"), made.thread("tf_Compute")
    for i in range(10):
        made.step(1_000.0 * i, 999.0, i)
        made.op(pool, "model/MatMul:MatMul", 1_000.0 * i + 10, 900)
    job = holding(made.trace())
    read(job, tables)
    view = job.view()
    trace, graphs = view.traces.main, view.graphs
    assert trace is not None
    assert graphs is not None
    share = NodeCosts(trace, graphs, None).of_nodes([graphs.node_of(node.name)])
    assert share.tracing == pytest.approx(EVENT_NS * 30 / 10e6, rel=0.1)  # three events in each step of 1 ms
    assert share.low < share.ratio < share.high
