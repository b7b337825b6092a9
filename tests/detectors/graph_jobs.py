"""Jobs whose graphs were read: what the nodes are, and how long their ops run in steps of 100 ms, is chosen here."""

from __future__ import annotations

from tests.derive.graph_tables import Graph, Node, Tables
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, POOL, SCRIPT, Job
from tests.detectors.jobs import LAYER_SOURCE, PERIOD, STEPS, keras_fit, train_loop, unrolled
from tests.detectors.traced_jobs import STEP, TRACED, holding

from stepscope.model.log.program import Padding, Setting

NODES = "nodes of traced graphs"
LINE = 12
"""Of ``step`` in the user's program: what the fixtures' nodes stand on."""
TURN_OPS = ("Mul", "AddV2", "Tanh", "Sub", "Mul")
"""Of one turn; two of them are of one kind."""


def read(job: Job, tables: Tables) -> None:
    """The graphs of the process were read."""
    job.graphs = tables.table()
    job.event(*tables.events())


def running(tables: Tables, *ops: tuple[str, float], beside: float = 0.0) -> Job:
    """A traced job with these graphs; in each step ops (name:type, us) run one after another.

    ``beside``: on another thread an op of no node runs from the step's start on.
    """
    made = Maker()
    pool, other = made.thread("tf_Compute"), made.thread("tf_Compute2")
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        if beside:
            made.op(other, "unknown:Conv2D", at + 10, beside)
        for name, dur in ops:
            made.op(pool, name, at + 10, dur)
            at += dur
    job = holding(made.trace())
    read(job, tables)
    return job


def graph_only(tables: Tables) -> Job:
    """A job with these graphs and no trace."""
    job = keras_fit(90 * MS)
    read(job, tables)
    return job


def mapping(
    *,
    carries: bool = False,
    sums: bool = False,
    changes: bool = False,
    line: int = LINE,
    beside: int = 0,
    rows_of: int = 0,
    of: int = 0,
) -> Tables:
    """A loop over rows in a step; ``carries``: each turn reads what the one before left.

    ``beside``: how many nodes neither need the loop nor are needed by it; ``rows_of``: number of rows, 0: not shown;
    ``of``: the trace that the step is.
    """
    tables = Tables()
    step, body = tables.graph(of=of), tables.graph("body", name="while_body")
    batch = [step.op("batch", "Placeholder", outputs=f"float32[{rows_of},64]")] if rows_of else []
    unstack = step.op("unstack", "TensorListFromTensor", *batch, outputs="variant[]")
    loop = step.op("map/while", "StatelessWhile", unstack, line=line, function="loss")
    step.op("stack", "TensorListStack", loop)
    for i in range(beside):
        step.op(f"aux/Mul_{i}", "Mul")
    step.call(loop, body, "body")
    turn = body.op("turn", "Placeholder", outputs="int32[]")
    rows = body.op("rows", "Placeholder", outputs="variant[]")
    done = body.op("done", "Placeholder", outputs="variant[]")
    state = body.op("state", "Placeholder", outputs="float32[64]")
    row = body.op("row", "TensorListGetItem", rows, turn, outputs="float32[64]")
    value = body.op("mul", "Mul", row, state if carries else row, outputs="float32[64]")
    put = body.op("put", "TensorListSetItem", done, turn, value, outputs="variant[]")
    one = body.op("one", "Const", outputs="int32[]")
    body.op("Identity", "Identity", body.op("add", "AddV2", turn, one, outputs="int32[]"), outputs="int32[]")
    body.op("Identity_1", "Identity", rows, outputs="variant[]")
    body.op("Identity_2", "Identity", put, outputs="variant[]")
    handed_on = body.op("sum", "AddV2", state, value, outputs="float32[64]") if sums else value if carries else state
    body.op("Identity_3", "Identity", handed_on, outputs="float32[64]")
    if changes:
        body.op("train", "AssignSubVariableOp", line=line)
    return tables


def mapped(loop: float, *, each: float = 10.0, count: int = 100, tables: Tables | None = None) -> Job:
    """Steps with a loop that takes ``loop`` us, in ``count`` runs of its ops of ``each`` us."""
    made = Maker()
    pool = made.thread("tf_Compute")
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        for k in range(count):
            made.op(pool, "map/while/body/_1/mul:Mul", at + 10 + k * (loop - each) / (count - 1), each)
        made.op(pool, "model/MatMul:MatMul", at + 20 + loop, 1_000)
    job = holding(made.trace())
    read(job, tables if tables is not None else mapping())
    return job


def unseen(loop: float, *, other: float = 0.0, beside: int = 0) -> Job:
    """Steps with a loop of which no op is seen: ``loop`` us pass between what it needs and what needs it.

    ``other``: for so much of it an op of the model runs; ``beside``: see ``mapping``.
    """
    made = Maker()
    pool = made.thread("tf_Compute")
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.op(pool, "unstack:TensorListFromTensor", at + 10, 990)
        if other:
            made.op(pool, "model/MatMul:MatMul", at + 1_000, other)
        made.op(pool, "stack:TensorListStack", at + 1_000 + loop, 1_000)
    job = holding(made.trace())
    read(job, mapping(beside=beside))
    return job


def one_hot(product: float, *, depth: int = 12_000, smoothed: bool = False) -> Job:
    """Steps multiply a one-hot matrix, or one that was ``smoothed`` before, for ``product`` us with its gradient."""
    tables = one_hot_tables(depth, smoothed=smoothed)
    return running(
        tables, ("table/MatMul:MatMul", product / 2), ("gradient_tape/table/MatMul/MatMul:MatMul", product / 2)
    )


def one_hot_tables(depth: int, *, smoothed: bool = False) -> Tables:
    """The graph of ``one_hot``."""
    tables = Tables()
    graph = tables.graph()
    hot = graph.op("table/one_hot", "OneHot", outputs=f"float32[768,{depth}]", line=LINE)
    flat = graph.op("table/Reshape", "AddV2" if smoothed else "Reshape", hot, outputs=f"float32[768,{depth}]")
    rows = graph.variable("rows", f"float32[{depth},48]")
    graph.op("table/MatMul", "MatMul", flat, rows, outputs="float32[768,48]", line=LINE)
    graph.op("gradient_tape/table/MatMul/MatMul", "MatMul", flat, outputs=f"float32[{depth},48]")
    return tables


def category_tables(categories: int, rows: int, *, table: bool = False) -> Tables:
    """A one-hot matrix whose product has a row for each of its columns; ``table``: so has what is multiplied."""
    tables = Tables()
    graph = tables.graph()
    other = (
        graph.variable("codes", f"float32[{rows},48]")
        if table
        else graph.op("x", "Relu", outputs=f"float32[{rows},48]")
    )
    hot = graph.op("one_hot", "OneHot", outputs=f"float32[{rows},{categories}]", line=LINE)
    graph.op("MatMul", "MatMul", hot, other, outputs=f"float32[{categories},48]", line=LINE)
    graph.op("Sum", "Sum", hot, outputs=f"float32[{categories}]", line=LINE)
    return tables


def bag_tables(depth: int = 12_000, *, bincount: bool = False, over_columns: bool = False) -> Tables:
    """A multi-hot matrix in a product: counted, or of one-hot rows of which each sample's are joined.

    ``over_columns``: what is joined are the columns of each row, which leaves none of the matrix.
    """
    tables = Tables()
    graph = tables.graph()
    if bincount:
        bag = graph.op("encode/DenseBincount", "DenseBincount", outputs="float32[?,?]", line=LINE)
        bag = graph.op("encode/Cast", "Cast", bag, outputs=f"float32[?,{depth}]")
    else:
        hot = graph.op("encode/one_hot", "OneHot", outputs=f"float32[64,32,{depth}]", line=LINE)
        left = "float32[64,32]" if over_columns else f"float32[64,{depth}]"
        bag = graph.op("encode/Max", "Max", hot, outputs=left)
    rows = graph.variable("rows", f"float32[{depth},48]")
    graph.op("table/MatMul", "MatMul", bag, rows, outputs="float32[64,48]", line=LINE)
    graph.op("gradient_tape/table/MatMul/MatMul", "MatMul", bag, outputs=f"float32[{depth},48]")
    return tables


def checked(spent: float, *, off: bool = False, checks: bool = True) -> Job:
    """Steps whose graph checks numbers, for ``spent`` us; ``off``: the mode was turned off again, too late for it."""
    ops = ("DebugNumericSummaryV2:DebugNumericSummaryV2", spent), ("dense/MatMul:MatMul", 1_000)
    job = debug(running(checked_tables(checks=checks), *ops), on=True)
    return debug(job, on=False) if off else job


def checked_tables(*, checks: bool = True) -> Tables:
    """The graph of ``checked``."""
    tables = Tables()
    graph = tables.graph()
    made = graph.op("dense/MatMul", "MatMul", outputs="float32[64,48]", line=LINE)
    if checks:
        summary = graph.op("DebugNumericSummaryV2", "DebugNumericSummaryV2", made, outputs="float32[3]")
        graph.op("CheckNumericsV2", "CheckNumericsV2", summary, outputs="float32[3]")
    return tables


def debug(job: Job, *, on: bool) -> Job:
    """The program turns checks of numbers on or off."""
    job.event(Setting(name="check_numerics", value=on, file=SCRIPT, line=3, function="main"))
    return job


def padded(spent: float, *, mean: float = 28.0, columns: int = 400, works_on: str = "float32[32,400,64]") -> Job:
    """Steps work for ``spent`` us on tensors of 400 positions; 95 % of the sequences use ``p95`` of ``columns``."""
    tables = Tables()
    graph = tables.graph()
    looked_up = graph.op("embedding/Gather", "GatherV2", outputs=works_on, line=LINE)
    graph.op("dense/MatMul", "MatMul", looked_up, outputs="float32[32,8]")
    job = running(tables, ("embedding/Gather:GatherV2", spent), ("dense/MatMul:MatMul", 1_000))
    job.event(Padding(rows=8_000, columns=columns, mean=mean, p95=2 * mean, file=SCRIPT, line=5, function="main"))
    return job


def double(spent: float, *, weights: str = "float32", elements: str = "256,1536", kind: str = "float64") -> Job:
    """Steps compute for ``spent`` us in double or another precision, beside weights of some precision."""
    return running(double_tables(weights=weights, elements=elements, kind=kind), ("features/MatMul:MatMul", spent))


def double_tables(*, weights: str = "float32", elements: str = "256,1536", kind: str = "float64") -> Tables:
    """The graph of ``double``."""
    tables = Tables()
    graph = tables.graph()
    graph.variable("kernel", f"{weights}[64,64]")
    made = graph.op("features/MatMul", "MatMul", outputs=f"{kind}[{elements}]", line=LINE)
    graph.op("Cast", "Cast", made, outputs=f"float32[{elements}]", line=LINE + 2)
    return tables


def flattened(spent: float, *, maps: bool = True, units: int = 256) -> Job:
    """Steps work for ``spent`` us on the weight of a dense layer, on flattened maps or on a vector."""
    return running(flattened_tables(maps=maps, units=units), ("dense/MatMul:MatMul", spent))


def flattened_tables(*, maps: bool = True, units: int = 256) -> Tables:
    """The graph of ``flattened``."""
    tables = Tables()
    graph = tables.graph()
    layer = tables.layer("dense", line=LINE)
    weight = graph.variable("kernel", f"float32[65536,{units}]")
    source = graph.op(
        "conv", "Conv2D" if maps else "MatMul", outputs="float32[?,64,64,16]" if maps else "float32[?,65536]"
    )
    flat = graph.op("flatten/Reshape", "Reshape", source, outputs="float32[?,65536]")
    graph.op("dense/MatMul", "MatMul", flat, weight, outputs=f"float32[?,{units}]", layer=layer)
    return tables


def looked_up(spent: float, tables: Tables | None = None) -> Job:
    """Steps look up rows of a table and work for ``spent`` us on all of it."""
    return running(tables if tables is not None else table_tables(), ("adam/Mul:Mul", spent))


def table_tables(
    *, rows: int = 1_000_000, batch: str = "256", tied: bool = False, resource: bool = False, line: int = 0
) -> Tables:
    """The graph of ``looked_up``. ``tied``: the table is multiplied with; ``resource``: gathered by its handle.

    ``line``: of the user's code that works on all rows; 0: a library does.
    """
    tables = Tables()
    graph = tables.graph()
    layer = tables.layer("embedding", "Embedding", line=LINE)
    spec = f"float32[{rows},32]"
    read = graph.variable("embeddings", spec)
    source = Node(read.graph, read.number - 1, "embeddings/resource") if resource else read
    kind = "ResourceGather" if resource else "GatherV2"
    ids = graph.op("ids", "Placeholder", outputs=f"int64[{batch}]")
    graph.op("embedding/Gather", kind, source, ids, outputs=f"float32[{batch},32]", layer=layer)
    graph.op("adam/Mul", "Mul", read, outputs=spec, line=line, function="guard" if line else "step")
    if tied:
        graph.op("logits/MatMul", "MatMul", graph.op("hidden"), read, outputs=f"float32[{batch},{rows}]")
    return tables


def python_in_step(dur: int, *, of_data: bool = False) -> Job:
    """A custom loop whose function calls Python at ``LINE``; or one whose input does."""
    job = train_loop(80 * MS)
    traced = job.trace(0, MS, owner="tf.data" if of_data else "user", updates=2)
    tables = Tables()
    graph = tables.graph(of=traced.id)
    graph.op("PyFunc", "PyFunc", line=LINE, file=SCRIPT)
    read(job, tables)
    made = job.python("numpy_function", "mask_bands", line=20, stack=[(SCRIPT, "main", 44), (SCRIPT, "step", LINE)])
    made.every(PERIOD, STEPS, dur=dur, thread=POOL)
    return job


def unrolled_and_read(tracing: int, *, turns: int = 80, layers: bool = False, weights: bool = False) -> Job:
    """As ``unrolled``, and the graph was read: a loop's turns over one cell, over layers, or over weights."""
    job = unrolled(tracing, nodes=1_000, variables=-1)
    read_turns(job, turns, layers=layers, weights=weights)
    return job


def read_turns(job: Job, turns: int, *, layers: bool = False, weights: bool = False, in_turn: bool = False) -> None:
    """The graph of a loop's turns; ``in_turn``: each takes the result of the one before."""
    job.sources["/job/layer.py"] = LAYER_SOURCE
    tables = Tables()
    graph = tables.graph(of=1)
    last = None
    for turn in range(turns):
        last = _turn(tables, graph, turn, last if in_turn else None, own_layer=layers, own_weight=weights)
    while graph.count < 1_000:
        graph.op(f"gradient_tape/Mul_{graph.count}")
    read(job, tables)


def _turn(
    tables: Tables, graph: Graph, turn: int, last: Node | None, *, own_layer: bool, own_weight: bool
) -> Node | None:
    """The ops of one turn; after ``last``, each takes the result of the one before."""
    layer = tables.layer(f"dense_{turn}") if own_layer else 0
    weights = (graph.variable(f"kernel_{turn}", "float32[64,64]"),) if own_weight else ()
    made = None
    for i, kind in enumerate(TURN_OPS):
        name = f"loop_{turn}/{kind}_{i}"
        before = (made or last,) if last is not None else ()
        inputs = (*weights, *(node for node in before if node is not None))
        made = graph.op(name, kind, *inputs, layer=layer, line=5, file="/job/layer.py", function="call")
    return made
