"""Copies are followed through what keeps them, and no further."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Graph, Node, Tables

from stepscope.causes.graph.operands import copied_axes
from stepscope.causes.graph.operands.axis_parts import Axes, AxisPart, copies, regrouped
from stepscope.derive.graph.index import GraphIndex
from stepscope.model.log.graph import UNKNOWN

COPIED = 3
"""The size that stands for copies below."""


def constant(graph: Graph, *values: int) -> Node:
    return graph.op("c", "Const", outputs=f"int32[{len(values)}]", attributes=f'{{"value":{list(values)}}}')


def tiled() -> tuple[Tables, Graph, Node]:
    """A row of 8 that is tiled five times: float32[5,8]."""
    tables = Tables()
    graph = tables.graph()
    row = graph.op("row", "Placeholder", outputs="float32[1,8]")
    return tables, graph, graph.op("tile", "Tile", row, constant(graph, 5, 1), outputs="float32[5,8]")


def copied(tables: Tables, node: Node) -> list[int]:
    """Sizes of what is copied in the output of a node, by axis; 1: nothing."""
    index = GraphIndex(tables.worker())
    row = index.table.rows_of(node.graph).start + node.number - 2
    axes = copied_axes.build(index, {}).get((row, 0), ())
    return [part.size for part in copies(axes)]


@pytest.mark.parametrize(
    ("kind", "outputs", "more", "attributes", "found"),
    [
        ("Reshape", "float32[40]", (), "", [5]),
        ("Reshape", "float32[5,2,4]", (), "", [5]),
        ("Reshape", "float32[4,10]", (), "", []),
        ("ExpandDims", "float32[5,1,8]", (), "", [5]),
        ("Cast", "float64[5,8]", (), "", [5]),
        ("Tanh", "float32[5,8]", (), "", [5]),
        ("Transpose", "float32[8,5]", (1, 0), "", [5]),
        ("Sum", "float32[8]", (0,), "", []),
        ("Sum", "float32[5]", (1,), "", [5]),
        ("Softmax", "float32[5,8]", (), "", [5]),
        ("RandomShuffle", "float32[5,8]", (), "", []),
        ("StridedSlice", "float32[1,5,8]", (0,), '{"new_axis_mask":1}', [5]),
        ("StridedSlice", "float32[8]", (0,), '{"shrink_axis_mask":1}', []),
        ("StridedSlice", "float32[3,8]", (0,), "{}", [3]),
    ],
)
def test_what_keeps_copies(kind: str, outputs: str, more: tuple[int, ...], attributes: str, found: list[int]) -> None:
    """Views, casts and ops of each element keep them; what is not known ends the search."""
    tables, graph, tile = tiled()
    others = [constant(graph, *more)] if more else []
    assert copied(tables, graph.op("x", kind, tile, *others, outputs=outputs, attributes=attributes)) == found


def test_an_op_of_two_tensors_keeps_what_is_copied_in_both() -> None:
    """Data on the other side differs along its axes; what has one element there does not."""
    tables, graph, tile = tiled()
    data = graph.op("data", "Placeholder", outputs="float32[5,8]")
    bias = graph.op("bias", "Placeholder", outputs="float32[8]")
    assert copied(tables, graph.op("x", "AddV2", tile, data, outputs="float32[5,8]")) == []
    assert copied(tables, graph.op("y", "AddV2", tile, bias, outputs="float32[5,8]")) == [5]


def test_copies_inside_a_dimension_are_parts_of_it() -> None:
    """``tf.repeat``: each of the rows stands five times in a row, whatever the size of the batch."""
    tables = Tables()
    graph = tables.graph()
    rows = graph.op("rows", "Placeholder", outputs="float32[?,1,8]")
    tile = graph.op("tile", "Tile", rows, constant(graph, 1, 5, 1), outputs="float32[?,5,8]")
    flat = graph.op("flat", "Reshape", tile, outputs="float32[?,8]")
    back = graph.op("back", "Reshape", flat, outputs="float32[?,5,8]")
    assert copied(tables, flat) == [5]
    assert copied(tables, back) == [5]


def test_a_stack_of_one_tensor_and_a_look_up_with_equal_ids_make_copies() -> None:
    """A stack of several tensors, and ids that are data, make none."""
    tables = Tables()
    graph = tables.graph()
    one, two = (graph.op(name, "Placeholder", outputs="float32[8]") for name in "ab")
    axis = '{"axis":0}'
    same = graph.op("same", "Pack", one, one, one, outputs="float32[3,8]", attributes=axis)
    mixed = graph.op("mixed", "Pack", one, two, one, outputs="float32[3,8]", attributes=axis)
    assert copied(tables, same) == [3]
    assert copied(tables, mixed) == []
    ids = graph.op("ids", "Fill", constant(graph, 7), constant(graph, 0), outputs="int32[7]")
    table = graph.op("table", "Placeholder", outputs="float32[100,8]")
    found = graph.op("found", "GatherV2", table, ids, constant(graph, 0), outputs="float32[7,8]")
    assert copied(tables, found) == [7]


def test_copies_are_followed_into_called_functions() -> None:
    """An argument is what the caller gives; in a loop only if no iteration changes it."""
    tables, graph, tile = tiled()
    inner = tables.graph("f")
    argument = inner.op("arg", "Placeholder", outputs="float32[5,8]")
    used = inner.op("used", "Tanh", argument, outputs="float32[5,8]")
    graph.call(graph.op("call", "PartitionedCall", tile, outputs="float32[5,8]"), inner)
    assert copied(tables, used) == [5]


def test_parts_are_regrouped_by_size() -> None:
    """One dimension may be unknown; two of them leave it open, unless the dimensions stay as they are."""

    def axes(*sizes: int) -> Axes:
        return tuple((AxisPart(size, 1 if size == COPIED else -1),) for size in sizes)

    assert regrouped(axes(2, 3, 4), ((AxisPart(6),), (AxisPart(4),))) == ((AxisPart(2), AxisPart(3, 1)), (AxisPart(4),))
    assert regrouped(axes(UNKNOWN, 3, 4), ((AxisPart(UNKNOWN),), (AxisPart(4),))) == (
        (AxisPart(UNKNOWN), AxisPart(3, 1)),
        (AxisPart(4),),
    )
    assert regrouped(axes(UNKNOWN, UNKNOWN), ((AxisPart(UNKNOWN),), (AxisPart(UNKNOWN),), (AxisPart(2),))) is None
    assert regrouped(axes(6, 4), ((AxisPart(2),), (AxisPart(12),))) == ((AxisPart(2),), (AxisPart(3), AxisPart(4)))


def looped(*, state: str = "Fill", added: bool = False) -> tuple[Tables, Node, Node]:
    """A recurrent layer over rows that stand five times each: a product within its body, and the new state.

    ``state``: what makes the first state. ``added``: the body adds what differs from copy to copy.
    """
    tables = Tables()
    step, body = tables.graph(), tables.graph("body")
    rows = step.op("rows", "Placeholder", outputs="float32[?,1,4,8]")
    tile = step.op("tile", "Tile", rows, constant(step, 1, 5, 1, 1), outputs="float32[?,5,4,8]")
    flat = step.op("flat", "Reshape", tile, outputs="float32[?,4,8]")
    turned = step.op("turned", "Transpose", flat, constant(step, 1, 0, 2), outputs="float32[4,?,8]")
    taken = step.op("list", "TensorListFromTensor", turned, constant(step, 0, 8), outputs="variant[]")
    first = step.op("first", state, constant(step, 0, 8), outputs="float32[?,8]")
    zero = step.number("zero", 0)
    given = step.op("given", "TensorListReserve", zero, outputs="variant[]")
    kernel = step.op("kernel", "Placeholder", outputs="resource[]")
    step.call(step.op("while", "While", zero, zero, given, first, taken, kernel, outputs="float32[?,8]"), body, "body")

    counter, time = (body.op(name, "Placeholder", outputs="int32[]") for name in ("counter", "time"))
    out = body.op("out", "Placeholder", outputs="variant[]")
    held = body.op("held", "Placeholder", outputs="float32[?,8]")
    item = body.op("items", "Placeholder", outputs="variant[]")
    weights = body.variable("weights", "float32[8,8]")
    item = body.op("item", "TensorListGetItem", item, time, outputs="float32[?,8]")
    if added:
        item = body.op("own", "AddV2", item, body.op("noise", "RandomUniform", time), outputs="float32[?,8]")
    product = body.op("product", "MatMul", item, weights, outputs="float32[?,8]")
    new = body.op("new", "AddV2", product, held, outputs="float32[?,8]")
    put = body.op("put", "TensorListSetItem", out, time, new, outputs="variant[]")
    one = body.number("one", 1)
    later, after = (body.op("add", "AddV2", of, one, outputs="int32[]") for of in (counter, time))
    for result, spec in ((later, "int32[]"), (after, "int32[]"), (put, "variant[]"), (new, "float32[?,8]")):
        body.op("result", "Identity", result, outputs=spec)
    return tables, product, new


def test_copies_go_through_loops() -> None:
    """Rows that stand five times each, through a list into the body; the state begins equal and stays equal."""
    tables, product, new = looped()
    assert copied(tables, product) == [5]
    assert copied(tables, new) == [5]


def test_a_state_that_differs_ends_the_search() -> None:
    """What the body makes of the items alone is copied still; what it makes of the state is not."""
    tables, product, new = looped(state="RandomStandardNormal")
    assert copied(tables, product) == [5]
    assert copied(tables, new) == []
    tables, product, new = looped(added=True)
    assert copied(tables, product) == copied(tables, new) == []
