"""Blocks of nodes are read as the agent writes them; damage is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.collector.agent_files import graph_blocks
from stepscope.model.log.graph import TEXT_COLUMNS, TensorSpec, assemble, path_of, specs

BLOCK: dict[str, Any] = {
    "t": "nodes",
    "at": 5,
    "graph": 3,
    "strings": ["", "a", "MatMul", "float32[2,?]"],
    "node": [2, 3],
    "name": [1, 0],
    "type": [2, 2],
    "device": [0, 0],
    "outputs": [3, 0],
    "file": [0, 0],
    "function": [0, 0],
    "line": [7, 0],
    "owner": [0, 1],
    "fan_in": [0, 2],
    "producers": [2, 9],
    "slots": [0, 1],
}


def test_block() -> None:
    """Columns come back; an input whose node was not read is unknown."""
    table = assemble([graph_blocks.decode(msgspec.json.encode(BLOCK))])
    assert table.graph.tolist() == [3, 3]
    assert (table.name_of(0), table.type_of(1), table.line.tolist()) == ("a", "MatMul", [7, 0])
    assert table.specs_of(0) == (TensorSpec("float32", (2, -1)),)
    assert table.inputs_of(1).tolist() == [0, -1]
    assert table.slots.tolist() == [0, 1]


def test_callers() -> None:
    """A line comes with those from which it was reached, nearest first; older logs have none."""
    strings = [*BLOCK["strings"], "5:6:8;5:7:20", "train.py", "loss", "step"]
    lines = {"strings": strings, "callers": [4, 0], "file": [5, 0], "function": [6, 0]}
    table = assemble([graph_blocks.decode(msgspec.json.encode({**BLOCK, **lines}))])
    assert path_of(table, 0) == (("train.py", "loss", 7), ("train.py", "loss", 8), ("train.py", "step", 20))
    assert path_of(table, 1) == ()
    older = assemble([graph_blocks.decode(msgspec.json.encode({**BLOCK, "file": [1, 0]}))])
    assert path_of(older, 0) == (("a", "", 7),)


@pytest.mark.parametrize(
    "change",
    [
        {"node": [2]},
        {"name": [1, 4]},
        {"type": [-1, 0]},
        {"fan_in": [0, 3]},
        {"fan_in": [-1, 3]},
        {"slots": [0]},
        {"strings": None},
        {"graph": "x"},
        {"strings": ["", "a", "MatMul", "9:1:2"], "callers": [3, 0]},
        {"strings": ["", "a", "MatMul", "1:2"], "callers": [3, 0]},
    ],
)
def test_damage(change: dict[str, Any]) -> None:
    """Columns that do not fit each other are no block."""
    with pytest.raises(ValueError, match=r"."):
        graph_blocks.decode(msgspec.json.encode({**BLOCK, **change}))


def test_repeated_nodes_count_once() -> None:
    """What is written twice, because the sidecar died in between, is there once; order of parts does not matter."""
    first = graph_blocks.decode(msgspec.json.encode(BLOCK))
    later = graph_blocks.decode(msgspec.json.encode({**BLOCK, "graph": 1}))
    once, twice = assemble([later, first]), assemble([first, later, first])
    for name in ("graph", "node", "line", "owner", "first_input", "producers", "slots"):
        assert getattr(once, name).tolist() == getattr(twice, name).tolist(), name
    for name in TEXT_COLUMNS:
        texts = [[table.text(getattr(table, name), row) for row in range(4)] for table in (once, twice)]
        assert texts[0] == texts[1]


def test_nothing() -> None:
    """No parts, or empty ones, are an empty table."""
    empty = graph_blocks.decode(msgspec.json.encode({**BLOCK, **{key: [] for key in [*BLOCK][4:]}}))
    assert len(assemble([])) == len(assemble([empty])) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float32[]", [("float32", ())]),
        ("float32[32,?];int64[*]", [("float32", (32, -1)), ("int64", None)]),
        ("", []),
        ("float32", []),
        ("float32[a]", []),
        ("float32[2,]", []),
    ],
)
def test_specs(text: str, expected: list[tuple[str, tuple[int, ...] | None]]) -> None:
    """Types and shapes; what reads as none is left out."""
    assert [(s.dtype, s.shape) for s in specs(text)] == expected


@given(st.lists(st.integers(0, 1000), max_size=5))
def test_elements(shape: list[int]) -> None:
    """Elements are the product of the dimensions."""
    (spec,) = specs("int8[" + ",".join(map(str, shape)) + "]")
    product = 1
    for size in shape:
        product *= size
    assert spec.elements == product
