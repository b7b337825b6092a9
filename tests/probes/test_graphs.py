"""What is noted and read of graphs: lines, layers, shapes, calls, and that nothing is kept alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stepscope.derive.graph.index import GraphIndex
from stepscope.model.log.events import AgentDiagnostic, Traced
from stepscope.model.log.graph import GraphRead, GraphsRead, Layer, TensorSpec
from stepscope.model.session.session import Worker, WorkerInfo
from stepscope.tables.records import RecordTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``graphs``."""
    return recorded("graphs")


@pytest.fixture(scope="module")
def index(run: Any) -> GraphIndex:
    """Its nodes."""
    info = WorkerInfo(key="1", pid=1)
    return GraphIndex(Worker(info=info, records=RecordTable.empty(), events=run.events, graphs=run.graphs))


def rows_on(run: Any, index: GraphIndex, mark: str) -> list[int]:
    """The nodes that the marked line made."""
    table = index.table
    line = run.line(mark)
    return [i for i in range(len(table)) if table.line[i] == line and table.text(table.file, i) == str(run.source)]


def types_on(run: Any, index: GraphIndex, mark: str) -> set[str]:
    """Op types of the nodes that the marked line made."""
    return {index.table.type_of(row) for row in rows_on(run, index, mark)}


def graph_of(index: GraphIndex, row: int) -> GraphRead:
    """The graph of a node."""
    return index.graphs[int(index.table.graph[row])]


def test_the_job_is_as_without_us(run: Any) -> None:
    """The same output and graphs, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def test_lines(run: Any, index: GraphIndex) -> None:
    """Ops carry the innermost line of user code inside of the trace, through AutoGraph too."""
    assert {"Tanh", "AddV2"} <= types_on(run, index, "tanh")
    assert {"MatMul"} <= types_on(run, index, "matmul")
    assert {"Mul"} <= types_on(run, index, "in-branch")
    assert {"Sum"} <= types_on(run, index, "after-loop")
    assert {"MatMul"} <= types_on(run, index, "product")
    functions = {index.table.text(index.table.function, row) for row in rows_on(run, index, "in-branch")}
    assert {name.rpartition(".")[2] for name in functions} == {"looped"}


def test_unrolled_turns_stand_on_one_line(run: Any, index: GraphIndex) -> None:
    """The body of a Python loop that was traced stands there once per turn."""
    forward = [row for row in rows_on(run, index, "unrolled") if index.table.type_of(row) == "Pow"]
    graphs = [int(index.table.graph[row]) for row in forward]
    assert {graphs.count(graph) for graph in graphs} == {5}


def test_layers(run: Any, index: GraphIndex) -> None:
    """Ops of a layer know it, the layer knows the line that built it and, in Keras 3, in which one it is called."""
    layers = {layer.name: layer for layer in run.all(Layer)}
    inside, last = layers["inside"], layers["last"]
    assert (inside.cls, inside.file, inside.line) == ("Dense", str(run.source), run.line("built-inside"))
    assert (last.cls, last.line) == ("Dense", run.line("built"))
    owned = [row for row in index.table.of_types("MatMul") if index.table.owner[row] == inside.id]
    assert owned
    assert {int(index.table.line[row]) for row in owned if not index.is_gradient(row)} == {run.line("calls-inside")}
    if inside.outer:
        assert run.line("built") == next(layer for layer in layers.values() if layer.id == inside.outer).line


def test_metrics(run: Recorded) -> None:
    """Keras 3 updates metrics in no scope of theirs; that they were made is told with the line."""
    layers = {layer.name: layer for layer in run.all(Layer)}
    if not layers["inside"].outer:
        pytest.skip("Keras 2: a metric is a layer")
    area = layers["area"]
    assert (area.cls, area.file, area.line) == ("Mean", str(run.source), run.line("built-metric"))


def test_the_optimizers_update_is_the_optimizers(run: Any, index: GraphIndex) -> None:
    """Its ops know it, and it the line that made it; none of the gradients that it applies is its own."""
    (adam,) = [layer for layer in run.all(Layer) if layer.cls == "Adam"]
    assert adam.line == run.line("built-optimizer")
    owned = [row for row in range(len(index.table)) if index.table.owner[row] == adam.id]
    assert {"Sqrt", "Square", "AssignSubVariableOp"} <= {index.table.type_of(row) for row in owned}
    assert not any(index.is_gradient(row) for row in owned)


def test_shapes_and_inputs(run: Any, index: GraphIndex) -> None:
    """Nodes know types and static shapes of their outputs, and who makes their inputs."""
    (row,) = [row for row in rows_on(run, index, "product") if index.table.type_of(row) == "MatMul"]
    assert index.table.specs_of(row) == (TensorSpec("float32", (-1, 8)),)
    assert [index.table.name_of(int(i)) for i in index.table.inputs_of(row)] == ["fed", "Const"]
    assert graph_of(index, row).role == "session"


def test_calls(run: Any, index: GraphIndex) -> None:
    """Loops, branches and functions are read too, and linked to the node that calls them."""
    (row,) = [r for r in rows_on(run, index, "matmul") if index.table.type_of(r) == "MatMul"]
    roles = []
    while True:
        roles.append(graph_of(index, row).role)
        caller = index.caller.get(int(index.table.graph[row]))
        if caller is None:
            break
        row = caller
    assert roles == ["function", "then_branch", "body", "function"]
    traces = {t.id: t.function for t in run.all(Traced)}
    assert traces[graph_of(index, row).of] == "looped"


def test_gradients(run: Any, index: GraphIndex) -> None:
    """The gradient that Python makes of a function is a graph of its own; its ops lead to what they differentiate.

    One that is made of a function that was read before is read too.
    """
    gradients = [g for g in run.all(GraphRead) if g.role == "gradient"]
    assert {index.graphs[g.of].name for g in gradients} == {"looped", "later"}
    fit = [row for row in index.table.of_types("TanhGrad") if index.is_gradient(row)]
    assert fit
    assert {int(index.table.line[index.forward_of(row)]) for row in fit} == {run.line("tanh")}


def test_variables(run: Recorded, index: GraphIndex) -> None:
    """Captured variables are known by name, type, shape, and whether they are trained."""
    (row,) = [r for r in rows_on(run, index, "matmul") if index.table.type_of(r) == "MatMul"]
    (variable,) = graph_of(index, row).variables
    assert variable[1:] == ("Variable:0", "float32[8,8]", True)


def test_constants(run: Recorded, index: GraphIndex) -> None:
    """Captured tensors are told from arguments, and handles of variables from both."""
    (row,) = [r for r in rows_on(run, index, "captured") if index.table.type_of(r) == "MatMul"]
    graph = graph_of(index, row)
    argument, held = index.table.inputs_of(row).tolist()
    assert index.table.rows_with(graph.id, graph.constants) == [held] != [argument]
    (row,) = [r for r in rows_on(run, index, "matmul") if index.table.type_of(r) == "MatMul"]
    assert graph_of(index, row).constants == ()


def test_matrices_of_zeros(run: Recorded, index: GraphIndex) -> None:
    """A large captured matrix that is zero nearly everywhere is known by the share; one of zeros alone is not."""
    rows = [r for r in rows_on(run, index, "spread") if index.table.type_of(r) == "MatMul"]
    graph = graph_of(index, rows[0])
    ((node, zeros),) = graph.empty
    (edges,) = index.table.rows_with(graph.id, [node])
    assert edges in index.table.inputs_of(rows[-1]).tolist()
    assert zeros == 1 - 1 / 512
    (row,) = [r for r in rows_on(run, index, "captured") if index.table.type_of(r) == "MatMul"]
    assert graph_of(index, row).empty == ()


def test_accounts(run: Any) -> None:
    """Each graph says what reading and noting it took; what was not read is counted."""
    read = [g for g in run.all(GraphRead) if g.state == "read"]
    assert all(g.cpu_ns > 0 and g.nodes > 0 for g in read)
    told = run.all(GraphsRead)[-1]
    assert (told.left, told.capped) == (0, 0)
    assert told.read == len(read)
    assert told.died + told.alike > 0  # the twenty functions of one line, that died at once
