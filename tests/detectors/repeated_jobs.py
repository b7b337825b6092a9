"""Jobs whose graphs compute more than they need: products in a bad order, and passes that are made twice."""

from __future__ import annotations

from tests.derive.graph_tables import Graph, Node, Tables
from tests.derive.sessions import MS, Job, node
from tests.detectors.graph_jobs import LINE, running

from stepscope.wire.kinds import Kind


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


def invariant(spent: float, tables: Tables | None = None, *, turns: int = 10) -> Job:
    """Steps run a loop whose body solves for ``spent`` us in all of its ``turns``, with the solves' gradients."""
    each = spent / (2 * turns)
    solve, gradient = "rnn/while/body/_1/cell/MatrixSolve", "rnn/while_grad/body/_9/gradients/cell/MatrixSolve_grad"
    ops = [(f"{solve}:MatrixSolve", each), (f"{gradient}/MatrixSolve:MatrixSolve", each)] * turns
    return running(tables if tables is not None else solve_tables(), *ops, ("dense/MatMul:MatMul", 100.0))


def solve_tables(
    *,
    written: bool = False,
    handed_back: bool = True,
    random: bool = False,
    constant: bool = False,
    python: bool = False,
    units: int = 64,
    between: str = "Sub",
) -> Tables:
    """The graph of ``invariant``: a cell that solves with its weight, and a tensor that the loop hands back.

    ``written``: the body updates the weight; ``random``: noise is added to it; ``constant``: it is one; ``python``: the
    body runs a function of Python.
    """
    tables = Tables()
    step, body, back = tables.graph(), tables.graph("body", name="while_body"), tables.graph("body", name="grad_body")
    counter, most, start, scale = (step.op(name, "Const", outputs="int32[]") for name in ("n", "most", "h", "scale"))
    handle = _handle(step, "skew")
    loop = step.op("rnn/while", "While", counter, most, start, scale, handle)
    step.op("dense/MatMul", "MatMul", loop)
    step.call(loop, body, "body")
    step.call(step.op("rnn/while_grad", "StatelessWhile", loop), back, "body")
    back.op("gradients/cell/MatrixSolve_grad/MatrixSolve", "MatrixSolve", back.op("popped", "TensorListPopBack"))
    matrix = f"float32[{units},{units}]"
    turn, end = (body.op(name, "Placeholder", outputs="int32[]") for name in ("turn", "end"))
    if python:
        body.op("cell/EagerPyFunc", "EagerPyFunc", turn)
    state, shift = (body.op(name, "Placeholder", outputs=matrix) for name in ("state", "shift"))
    resource = body.op("cell/resource", "Placeholder", outputs="resource[]")
    read = body.op("cell/ReadVariableOp", "ReadVariableOp", resource, outputs=matrix)
    weight = body.op("cell/eye", "Const", outputs=matrix) if constant else read
    if random:
        weight = body.op("cell/noise", "AddV2", weight, body.op("random", "RandomUniform", end), outputs=matrix)
    shifted = body.op("cell/shifted", between, weight, weight if constant else shift, outputs=matrix)
    solved = body.op("cell/MatrixSolve", "MatrixSolve", shifted, weight, outputs=matrix, line=LINE, function="call")
    new = body.op("cell/MatMul", "MatMul", state, solved, outputs=matrix, line=LINE + 1)
    if written:
        body.op("AssignSubVariableOp", "AssignSubVariableOp", resource, new)
    one = body.op("one", "Const", outputs="int32[]")
    results = (body.op("add", "AddV2", turn, one, outputs="int32[]"), end, new, shift if handed_back else new)
    for i, result in enumerate(results):
        body.op(f"Identity_{i}", "Identity", result, outputs=matrix if i > 1 else "int32[]")
    return tables


IMAGES = "float32[?,32,32,3]"


def frozen(
    spent: float,
    tables: Tables | None = None,
    *,
    epochs: int = 10,
    source: str = "TensorSliceDataset",
    cardinality: int = 4,
) -> Job:
    """Epochs of Keras' fit over a mapped dataset; frozen layers take ``spent`` us of each step."""
    job = running(tables if tables is not None else frozen_tables(), ("base/Conv2D:Conv2D", spent))
    return fed(job, epochs=epochs, source=source, cardinality=cardinality)


def fed(job: Job, *, epochs: int = 10, source: str = "TensorSliceDataset", cardinality: int = 4) -> Job:
    """The 40 steps of a job are epochs of a dataset, with an iterator each."""
    job.trace(0, MS, owner="tf.data", function="decode", line=71)
    job.trace(0, MS, owner="keras", file="/keras/trainer.py", line=131, updates=2)
    mapped = job.dataset("MapDataset", job.dataset(source, line=70), line=71, fn_name="decode", cardinality=cardinality)
    dataset = job.dataset("BatchDataset", mapped, line=72, batch=8, cardinality=cardinality)
    hook = job.call(Kind.HOOK, "on_epoch_end", hook="on_epoch_end")
    for epoch in range(epochs):
        end = (epoch + 1) * 4_000 * MS // epochs
        iterator = job.iterator(dataset, batch=8)
        hook.at(end - 2 * MS, MS)
        nodes = [node(1, "Batch", 2, elements=4), node(2, "Map", elements=4)]
        job.model(iterator, end - MS, nodes, [90_000] * 3)
    return job


def frozen_tables(
    *,
    trained: bool = False,
    written_elsewhere: bool = False,
    random: str = "",
    data_op: str = "Cast",
    also_on_output: bool = False,
    mixes: bool = False,
    unused_gradient: bool = False,
    argument: bool = False,
) -> Tables:
    """The graphs of ``frozen``: a convolution with a frozen kernel on the batch, and a head that is trained."""
    tables = Tables()
    mapped = tables.graph(of=1, name="decode")
    mapped.op("decoded", data_op, mapped.op("record", "Placeholder"))
    graph = tables.graph(of=2)
    iterator = graph.op("iterator", "Placeholder", outputs="resource[]")
    batch = graph.op("batch", "Placeholder" if argument else "IteratorGetNext", iterator, outputs=IMAGES)
    x = graph.op("scaled", "Mul", batch, graph.op("by", "Const", outputs="float32[]"), outputs=IMAGES)
    if random:
        shape = graph.op("random/shape", "Const", outputs="int32[4]")
        x = graph.op("flipped", "Mul", x, graph.op("random", random, shape, outputs=IMAGES), outputs=IMAGES)
    if mixes:
        over = graph.op("mean/over", "Const", outputs="int32[1]")
        x = graph.op("centred", "Sub", x, graph.op("mean", "Mean", x, over, outputs="float32[32,32,3]"), outputs=IMAGES)
    handle = _handle(graph, "base/kernel")
    kernel = graph.op("base/ReadVariableOp", "ReadVariableOp", handle, outputs="float32[64,64]")
    features = graph.op("base/Conv2D", "Conv2D", x, kernel, outputs="float32[?,32,32,8]", line=LINE)
    weight = _handle(graph, "head/kernel")
    read = graph.op("head/ReadVariableOp", "ReadVariableOp", weight, outputs="float32[64,64]")
    out = graph.op("head/MatMul", "MatMul", features, read, outputs="float32[?,64]", line=LINE + 1)
    if also_on_output:
        graph.op("metric/AssignVariableOp", "AssignVariableOp", weight, graph.op("again/Conv2D", "Conv2D", out, kernel))
    back = graph.op("gradient_tape/head/MatMul/MatMul", "MatMul", features, out)
    if unused_gradient:
        graph.op("gradient_tape/base/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter", x, back)
    graph.op("sgd/AssignSubVariableOp", "AssignSubVariableOp", weight, graph.op("sgd/Mul", "Mul", back))
    if trained:
        own = graph.op("gradient_tape/base/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter", x, back)
        graph.op("Identity", "Identity", own)
    if written_elsewhere:
        other = tables.graph(name="other_step")
        other.op("assign", "AssignVariableOp", _handle(other, "base/kernel"), other.op("value", "Const"))
    return tables
