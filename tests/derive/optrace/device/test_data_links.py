"""From the op that makes a tensor to the ops that take it."""

from __future__ import annotations

import numpy as np
from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace.device import data_links
from stepscope.derive.optrace.device.event_links import LinkKind
from stepscope.model.log.events import Traced
from stepscope.tables.optrace import OpTrace


def told(trace: OpTrace, tables: Tables) -> set[tuple[str, int, str, int]]:
    """Links by the ops and when they begin, in us."""
    links = data_links.build(trace, GraphIndex(tables.worker()))
    assert np.unique(links.kind).tolist() in ([], [int(LinkKind.DATA)])

    def named(row: int) -> tuple[str, int]:
        name = trace.strings[trace.names()[row]].partition(":")[0]
        return name, int(trace.events.start_ns[row]) // 1000

    rows = zip(links.source.tolist(), links.target.tolist(), strict=True)
    return {(*named(source), *named(target)) for source, target in rows}


def test_the_last_run_before_and_through_nodes_that_do_not_run() -> None:
    """Two steps: each taker has the maker of its own step; a cast that was merged is passed through."""
    tables = Tables()
    step = tables.graph(of=1)
    weights = step.variable("weights", "float32[64,64]")
    product = step.op("product", "MatMul", weights, step.op("batch", "Placeholder"))
    cast = step.op("cast", "Cast", product)
    step.op("tanh", "Tanh", cast)
    step.op("sum", "Sum", product, cast)
    maker = Maker()
    pool, other = maker.thread("tf_Compute"), maker.thread("tf_Compute2")
    for at in (0, 100):
        maker.op(pool, "product:MatMul", at + 10, 20)
        maker.op(pool, "tanh:Tanh", at + 31, 5)
        maker.op(other, "sum:Sum", at + 33, 9)
    assert told(maker.trace(), tables) == {
        ("product", 10, "tanh", 31),
        ("product", 10, "sum", 33),
        ("product", 110, "tanh", 131),
        ("product", 110, "sum", 133),
    }


def test_what_runs_beside_made_nothing_for_it() -> None:
    """A maker that has not ended is of another run; a taker whose maker was not recorded has no link."""
    tables = Tables()
    step = tables.graph(of=1)
    step.op("tanh", "Tanh", step.op("product", "MatMul"))
    maker = Maker()
    pool, other = maker.thread("tf_Compute"), maker.thread("tf_Compute2")
    maker.op(pool, "product:MatMul", 10, 50)
    maker.op(other, "tanh:Tanh", 30, 5)
    assert told(maker.trace(), tables) == set()


def test_ops_of_the_input_have_none() -> None:
    """Their runs overlap; and a function of a map may name its ops as the step does."""
    tables = Tables()
    step, mapped = tables.graph(of=1), tables.graph(of=2)
    step.op("tanh", "Tanh", step.op("product", "MatMul"))
    mapped.op("scaled", "Mul", mapped.op("cast", "Cast"))
    tables.more.append(Traced(id=2, function="augment", function_key=2, owner="tf.data"))
    maker = Maker()
    pool = maker.thread("tf_Compute")
    maker.op(pool, "product:MatMul", 10, 5)
    maker.op(pool, "cast:Cast", 20, 5)
    maker.op(pool, "scaled:Mul", 30, 5)
    maker.stage(pool, "Prefetch::Map", 40, 20)
    maker.op(pool, "tanh:Tanh", 45, 5)
    assert told(maker.trace(), tables) == set()
    maker.op(pool, "tanh:Tanh", 70, 5)
    assert told(maker.trace(), tables) == {("product", 10, "tanh", 70)}
