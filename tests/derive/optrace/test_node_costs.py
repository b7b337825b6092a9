"""What nodes of graphs cost, by an op trace."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.detectors.graph_jobs import running

from stepscope.derive.optrace.node_costs import OpShare


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
