"""Jobs whose ops were run alone after the job: how long they take in steps of 100 ms and alone is chosen here."""

from __future__ import annotations

from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker
from tests.derive.sessions import Job
from tests.detectors.graph_jobs import LINE, read
from tests.detectors.traced_jobs import STEP, TRACED, holding

from stepscope.derive.graph import op_recipe
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.graph.index import GraphIndex
from stepscope.model.session.replays import ReplayedOp, Replays, ReplayTimes, Variant

US = 1000.0
PRODUCT = '{"transpose_a":false,"transpose_b":false}'


def product(kind: str = "float32") -> Tables:
    """A step with one product."""
    tables = Tables()
    graph = tables.graph()
    weights = graph.variable("kernel", f"{kind}[512,256]", line=LINE)
    data = graph.op("x", "Placeholder", outputs=f"{kind}[128,512]")
    graph.op("MatMul", "MatMul", data, weights, outputs=f"{kind}[128,256]", line=LINE, attributes=PRODUCT)
    return tables


def key(tables: Tables, name: str = "MatMul", kind: str = "MatMul") -> str:
    """The key of an op's recipe."""
    index = GraphIndex(tables.worker())
    return op_recipe.build(index, FullShapes(index, 0), index.node_of(name, kind), kind).key()


def times(alone_us: float, variant: Variant = "", threads: int = 0, *, waited: float = 0.0) -> ReplayTimes:
    """Times of an op alone, all runs alike."""
    ns = alone_us * US
    return ReplayTimes(
        variant=variant, threads=threads, fastest_ns=ns, median_ns=ns, slow_ns=ns, runs=9, waited_ratio=waited
    )


def replayed(
    spent: float,
    *alone: ReplayTimes,
    kind: str = "float32",
    fed: float = 0.0,
    fixed_ns: float = 2000.0,
    others: float = 0.0,
) -> Job:
    """A product takes ``spent`` us of each step; threads of the input work for ``fed`` us meanwhile.

    Other processes use ``others`` CPUs while it is replayed.
    """
    made, tables = Maker(), product(kind)
    pool, data = made.thread("tf_Compute"), made.thread("tf_data_pool")
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.op(pool, "MatMul:MatMul", at + 10, spent)
        if fed:
            made.stage(data, "Iterator::Root::Map", at + 10, fed)
    job = holding(made.trace())
    read(job, tables)
    ops = (ReplayedOp(key=key(tables), times=alone),) if alone else ()
    job.resources["replays"] = Replays(cores=2, fixed_ns=fixed_ns, others_cores=others, ops=ops)
    return job
