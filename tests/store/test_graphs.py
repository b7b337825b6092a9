"""Nodes of graphs come back from a session as they were written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.derive.graph_tables import Tables

from stepscope.model.log.graph import TEXT_COLUMNS
from stepscope.store import graphs, open_session, tables
from stepscope.store.writer import SessionWriter


def some() -> Tables:
    """A graph with a layer, an input and a variable."""
    made = Tables()
    graph = made.graph()
    weight = graph.variable("w", "float32[64,8]", line=4)
    graph.op("MatMul", "MatMul", graph.op("x", "Placeholder"), weight, outputs="float32[32,8];int32[]", line=5)
    made.graph("body").op("add", "AddV2")
    return made


def test_round_trip(made: Path) -> None:
    """Whatever was written, in one segment or twice, is read once."""
    written = some()
    writer = SessionWriter(made)
    writer.write_graphs("7-70", [written.columns()])
    writer.write_graphs("7-70", [written.columns()])
    (worker,) = open_session(made).workers
    expected, table = written.table(), worker.graphs
    assert len(table) == len(expected) == 5
    for name in ("graph", "node", "line", "owner", "first_input", "producers", "slots"):
        assert getattr(table, name).tolist() == getattr(expected, name).tolist(), name
    for name in TEXT_COLUMNS:
        for row in range(len(expected)):
            assert table.text(getattr(table, name), row) == expected.text(getattr(expected, name), row)


@pytest.mark.parametrize("column", ["graph", "name", "producers"])
def test_damage(made: Path, column: str) -> None:
    """A segment without a column, or with one of another type, costs that segment and is told."""
    columns = graphs.columns_of([some().columns()])
    folder = made / "workers" / "7-70"
    tables.write(folder / "graphs-000000000000-000000000000.parquet", {**columns, column: pa.array([1.5] * 5)})
    del columns[column]
    tables.write(folder / "graphs-000000000001-000000000001.parquet", columns)
    session = open_session(made)
    assert len(session.workers[0].graphs) == 0
    assert sum("no nodes of graphs" in d.text for d in session.manifest.diagnostics) == 2
