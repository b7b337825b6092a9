"""Jobs whose graphs compute more than they need: products in a bad order, and passes that are made twice."""

from __future__ import annotations

from tests.derive.graph_tables import Graph, Node, Tables
from tests.derive.sessions import Job
from tests.detectors.graph_jobs import LINE, running


def chained(spent: float, tables: Tables | None = None) -> Job:
    """Steps multiply three matrices for ``spent`` us in their first order, gradients included."""
    each = spent / 4
    return running(
        tables if tables is not None else chain_tables(),
        ("scores/MatMul:BatchMatMulV2", each),
        ("gradient_tape/scores/MatMul/MatMul:BatchMatMulV2", each),
        ("mixed/MatMul:BatchMatMulV2", 2 * each),
    )


def chain_tables(
    *, positions: str = "1024", between: str = "Mul", scalar: bool = True, width: int = 32, right: bool = False
) -> Tables:
    """The graph of ``chained``: (Q K^T) V, or V (Q K^T) where ``right``, with an op ``between`` the products."""
    tables = Tables()
    graph = tables.graph()
    side = f"float32[?,{positions},{width}]"
    square = f"float32[?,{positions},{positions}]"
    q, k, v = (graph.op(name, "Placeholder", outputs=side) for name in "qkv")
    scores = graph.op("scores/MatMul", "BatchMatMulV2", q, k, outputs=square, line=LINE)
    by = graph.op("by", "Const", outputs="float32[]" if scalar else square)
    scaled = graph.op("scaled", between, scores, *(() if between == "Softmax" else (by,)), outputs=square)
    if right:
        graph.op("mixed/MatMul", "BatchMatMulV2", v, scaled, outputs=f"float32[?,{width},{positions}]", line=LINE + 1)
    else:
        graph.op("mixed/MatMul", "BatchMatMulV2", scaled, v, outputs=side, line=LINE + 1)
    graph.op("gradient_tape/scores/MatMul/MatMul", "BatchMatMulV2", q, outputs=side)
    return tables


def repeated(spent: float, tables: Tables | None = None) -> Job:
    """Steps compute a pass a second time for ``spent`` us."""
    return running(tables if tables is not None else pass_tables(), ("second/MatMul:MatMul", spent))


def pass_tables(
    *,
    same_input: bool = True,
    same_weight: bool = True,
    differentiated: bool = False,
    dropout: bool = False,
    updated: bool = False,
    metric: bool = False,
) -> Tables:
    """The graph of ``repeated``: a pass whose gradient is taken, and a second one, after an update of the weights say,
    for a metric or to be handed out."""
    tables = Tables()
    graph = tables.graph()
    x = graph.op("x", "Placeholder")
    other = x if same_input else graph.op("y", "Placeholder")
    handle = _handle(graph, "kernel")
    _pass(tables, graph, "first", x, handle, gradient=True, dropout=dropout)
    if updated:
        graph.op("sgd/AssignSubVariableOp", "AssignSubVariableOp", handle, x)
    handle = handle if same_weight else _handle(graph, "target_kernel")
    out = _pass(tables, graph, "second", other, handle, gradient=differentiated, dropout=dropout)
    if metric:
        graph.op("AssignAddVariableOp", "AssignAddVariableOp", _handle(graph, "total"), graph.op("Sum", "Sum", out))
    return tables


def _handle(graph: Graph, name: str) -> Node:
    handle = graph.op(f"{name}/resource", "Placeholder", outputs="resource[]")
    graph.variables.append((handle.number, f"{name}:0", "float32[64,64]", True))
    return handle


def _pass(
    tables: Tables, graph: Graph, name: str, x: Node, handle: Node, *, gradient: bool, dropout: bool = False
) -> Node:
    line = LINE if name == "first" else LINE + 5
    layer = tables.layer("dense")
    if dropout:
        shape = graph.op(f"{name}/Shape", "Const", outputs="int32[2]", layer=layer)
        x = graph.op(f"{name}/keep", "Mul", x, graph.op(f"{name}/random", "RandomUniform", shape))
    read = graph.op(f"{name}/MatMul/ReadVariableOp", "ReadVariableOp", handle, outputs="float32[64,64]")
    product = graph.op(f"{name}/MatMul", "MatMul", x, read, line=line)
    out = graph.op(f"{name}/Relu", "Relu", product, line=line)
    if gradient:
        graph.op(f"gradient_tape/{name}/ReluGrad", "ReluGrad", out)
    return out
