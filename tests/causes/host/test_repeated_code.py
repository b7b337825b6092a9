"""What a Python loop leaves in a graph, and what does not come from one."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables

from stepscope.causes.host import repeated_code
from stepscope.derive.graph.index import GraphIndex


@pytest.mark.parametrize(("kind", "found"), [("Mul", 20), ("Placeholder", 0), ("Identity", 0)])
def test_only_work_is_repeated_code(kind: str, found: int) -> None:
    """A loop of the graph captures each weight at its own line: that is no loop of Python."""
    tables = Tables()
    graph = tables.graph()
    data = graph.op("data", "Placeholder")
    for number in range(20):
        graph.op(f"op{number}", kind, data, line=7)
    repeated = repeated_code.build(GraphIndex(tables.worker()), graph.id, {}, 16)
    assert (repeated.turns if repeated is not None else 0) == found
