"""Op time stands on the line, the layer and the type that it belongs to."""

from __future__ import annotations

from tests.derive.graph_tables import FILE, Graph, Tables

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace.line_times import Line, OpLines, build
from stepscope.model.log.events import Traced
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import PlaneKind, TraceSource

NS = 1_000
"""Picoseconds."""


def joined(tables: Tables, *events: tuple[str, int], data: tuple[tuple[str, int], ...] = ()) -> OpLines:
    """The join of a trace with these ops, one after the other; ``data``: inside of functions that tf.data calls."""
    builder = OpTraceBuilder(TraceSource(format="test"))
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    line, pool = builder.line(host, "python"), builder.line(host, "tf_data_private_threadpool")
    at = 0
    for name, dur in events:
        builder.event(line, name, at, dur)
        at += dur
    for name, dur in data:
        builder.event(pool, "InstantiatedCapturedFunction::Run", at, dur + 2)
        builder.event(pool, name, at + 1, dur)
        at += dur + 3
    return build(builder.build(), GraphIndex(tables.worker()))


def dense(tables: Tables, graph: Graph) -> int:
    """A layer with a node, its gradient, and one of the user's; returns the layer."""
    layer = tables.layer("dense", line=5)
    graph.op("model/dense/MatMul", "MatMul", layer=layer)
    graph.op("gradient_tape/model/dense/MatMul/MatMul", "MatMul", line=30)
    graph.op("scaled", "Mul", line=12)
    return layer


def test_lines_and_layers() -> None:
    """A gradient counts with what it is the gradient of, and is told apart; what has no node counts in the total."""
    tables = Tables()
    layer = dense(tables, tables.graph())
    found = joined(
        tables,
        ("model/dense/MatMul:_MklMatMul", 100),
        ("gradient_tape/model/dense/MatMul/MatMul:MatMul", 200),
        ("scaled:Mul", 50),
        ("unknown:Mul", 50),
    )
    assert (found.total_ps, found.joined_ps, found.joined_ratio) == (400 * NS, 350 * NS, 0.875)
    (of_layer,) = found.by_layer()
    assert of_layer.layer is not None
    assert (of_layer.layer.id, of_layer.self_ps, of_layer.gradient_ps, of_layer.ratio) == (
        layer,
        300 * NS,
        200 * NS,
        0.75,
    )
    lines = {share.line: (share.self_ps, share.gradient_ps) for share in found.by_line()}
    assert lines == {Line(FILE, "step", 30): (200 * NS, 200 * NS), Line(FILE, "step", 12): (50 * NS, 0)}
    types = {share.type: share.self_ps for share in found.by_type()}
    assert types == {"MatMul": 200 * NS, "_MklMatMul": 100 * NS, "Mul": 100 * NS}
    assert found.ops[0].name == "gradient_tape/model/dense/MatMul/MatMul"


def test_a_layer_without_a_line_stands_where_it_was_built() -> None:
    """What Keras does by itself has no line of the user's: the one that built the layer is shown."""
    tables = Tables()
    dense(tables, tables.graph())
    found = joined(tables, ("model/dense/MatMul:MatMul", 10))
    (op,) = found.ops
    assert (op.line, op.place) == (None, Line(FILE, "", 5))


def test_the_line_that_called_a_function() -> None:
    """Ops of a library's function stand on the line that called it; a line of their own goes before."""
    tables = Tables()
    outer, inner = tables.graph(), tables.graph()
    outer.call(outer.op("PartitionedCall", "PartitionedCall", line=7), inner)
    inner.op("library", "Mul")
    inner.op("own", "Mul", line=40)
    found = joined(tables, ("PartitionedCall/library:Mul", 10), ("PartitionedCall/own:Mul", 20))
    assert [op.line.line for op in found.ops if op.line is not None] == [40, 7]


def test_functions_of_the_input_pipeline_are_told_apart() -> None:
    """An op name that stands in the step and in a function of a map is split by where it ran."""
    tables = Tables()
    step, mapped = tables.graph(of=1), tables.graph(of=2)
    step.op("mul", "Mul", line=3)
    mapped.op("mul", "Mul", line=9)
    tables.more.append(Traced(id=1, function="step", function_key=1, owner="user"))
    tables.more.append(Traced(id=2, function="scale", function_key=2, owner="tf.data"))
    found = joined(tables, ("mul:Mul", 30), data=(("mul:Mul", 90),))
    assert {op.line.line: op.self_ps for op in found.ops if op.line is not None} == {3: 30 * NS, 9: 90 * NS}


def test_time_of_nodes() -> None:
    """The time of some nodes, with and without their gradients."""
    tables = Tables()
    dense(tables, tables.graph())
    found = joined(tables, ("model/dense/MatMul:MatMul", 100), ("gradient_tape/model/dense/MatMul/MatMul:MatMul", 200))
    (row,) = {op.of for op in found.ops}
    assert found.of_rows([row]) == 100 * NS
    assert found.with_gradients_of([row]) == 300 * NS


def test_nothing() -> None:
    """No ops, no shares."""
    found = joined(Tables())
    assert (found.ops, found.joined_ratio, found.by_line()) == ((), 0.0, ())
