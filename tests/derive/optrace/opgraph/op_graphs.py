"""Traced steps of which every op is known: two layers in a function, their gradients, and a loop."""

from __future__ import annotations

from dataclasses import dataclass

from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace.opgraph import op_graph, scopes
from stepscope.derive.optrace.opgraph.folding import Sums
from stepscope.derive.optrace.opgraph.op_graph import OpGraph
from stepscope.derive.optrace.opgraph.scopes import Scopes
from stepscope.derive.optrace.trace_view import OpView

STEPS = 4
RUNS = {
    "net/one/MatMul": 100,
    "net/one/Relu": 20,
    "net/two/MatMul": 200,
    "net/two/Relu": 30,
    "gradient_tape/net/two/MatMul": 150,
    "gradient_tape/net/one/MatMul": 50,
}
"""Ops in the order in which they run on one thread, with their times in us."""
LONG = "a_name_that_is_long_" * 11 + "12345"
"""225 characters."""


@dataclass(frozen=True)
class Traced:
    """A trace, with all that is derived of it."""

    view: OpView
    index: GraphIndex
    graph: OpGraph
    scopes: Scopes
    sums: Sums


def of(view: OpView, tables: Tables) -> Traced:
    """All that is derived of a trace."""
    index = GraphIndex(tables.worker())
    graph = op_graph.build(view, index)
    assert graph is not None
    made = scopes.build(graph, index)
    return Traced(view, index, graph, made, Sums(graph, made))


def tables(*, long: bool = False) -> Tables:
    """The graph of two dense layers and their gradients."""
    made = Tables()
    for name in ("one", "two"):
        made.layer(name)
    step = made.graph(of=1)
    last = step.op("batch", "Placeholder")
    for name in RUNS:
        kind = name.rpartition("/")[2]
        layer = 0 if "gradient" in name else 1 if "/one/" in name else 2
        last = step.op(name, kind, last, layer=layer, outputs="float32[32,64]", line=7 if layer else 0)
    if long:
        step.op(f"{LONG}/{LONG}", "Mul", last)
        step.op(f"{LONG}/Neg", "Neg", last)
    return made


def maker(*, long: bool = False) -> Maker:
    """Its steps of 1 ms, on one thread of the executor; another one is busy beside it with what nothing waits for."""
    made = Maker()
    one, other = made.thread("tf_Compute/1"), made.thread("tf_Compute/2")
    for i in range(STEPS):
        at = 1000.0 * i
        made.step(at, 999, i)
        made.call(at + 100, 800, 10 + i)
        begin = at + 110
        for name, dur in RUNS.items():
            made.op(one, f"{name}:{name.rpartition('/')[2]}", begin, dur, 10 + i)
            begin += dur
        made.op(other, "beside/aside:Mul", at + 110, 60, 10 + i)
        made.op(other, "beside/more:Mul", at + 171, 60, 10 + i)
        if long:
            made.op(other, f"{LONG}/{LONG}:Mul", at + 240, 60, 10 + i)
            made.op(other, f"{LONG}/Neg:Neg", at + 301, 60, 10 + i)
    return made


def loop() -> Traced:
    """A loop of which each turn runs a product and then a tanh that the next product takes."""
    made = Tables()
    step, body = made.graph(of=1), made.graph("body")
    product = body.op("while/product", "MatMul", body.op("while/state", "Placeholder"))
    body.op("while/Identity", "Identity", body.op("while/tanh", "Tanh", product))
    begin = step.op("first", "Mul")
    call = step.op("while", "While", begin)
    step.call(call, body, "body")
    step.op("after", "Neg", call)
    run = Maker()
    pool = run.thread("tf_Compute")
    for i in range(STEPS):
        at = 1000.0 * i
        run.step(at, 999, i)
        run.call(at + 50, 900, 10 + i)
        run.op(pool, "first:Mul", at + 100, 10, 10 + i)
        for turn in range(5):
            run.op(pool, "while/body/_7/while/product:MatMul", at + 120 + 40 * turn, 20, 10 + i)
            run.op(pool, "while/body/_7/while/tanh:Tanh", at + 141 + 40 * turn, 15, 10 + i)
        run.op(pool, "after:Neg", at + 400, 10, 10 + i)
    return of(run.view(), made)
