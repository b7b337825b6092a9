"""INP014 unread-input: its fixtures, and what reads all of a batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.graph_tables import Graph, Node, Tables
from tests.derive.sessions import MS, SCRIPT, Job, node
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, read
from tests.detectors.jobs import MAIN_CALL, PERIOD, STEPS
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.input.unread_input import DETECTOR

BATCH = 8
WIDTH = 1_000_000
WHOLE = "float32[?,1000000]"
Takes = Callable[[Graph, Node], Node]


def selects(width: int = 100_000) -> Takes:
    """Takes the first columns."""
    return lambda graph, x: graph.op("part", "StridedSlice", x, outputs=f"float32[?,{width}]", line=LINE)


def given(takes: Takes | None, *, state: str = "read") -> Tables:
    """A step that is given a batch of 32 MB, and what takes it."""
    tables = Tables(state=state)
    step = tables.graph(of=1)
    x = step.op("x", "Placeholder", outputs=WHOLE)
    if takes is not None:
        step.op("sum", "Sum", takes(step, x), outputs="float32[]")
    return tables


def job(tables: Tables, input_cpu: int = 50 * MS, *, waiting: float = 0.5, got: float = 1.0) -> Job:
    """Steps of 100 ms on one CPU that never wait for input; its map takes ``input_cpu`` of CPU time for a batch."""
    made = Job()
    made.trace(1, 1)
    source = made.dataset("RangeDataset", line=70)
    mapped = made.dataset("MapDataset", source, line=71, fn_name="decode", fn_file=SCRIPT, fn_line=15, fn_end_line=18)
    iterator = made.iterator(made.dataset("PrefetchDataset", mapped, line=72), batch=BATCH)
    made.function(**MAIN_CALL).every(PERIOD, STEPS, dur=PERIOD - 2 * MS, start=MS)
    made.nexts().every(PERIOD, STEPS, dur=MS, arg=iterator)
    for batches in (50, 90):
        size = batches * BATCH * WIDTH * 4
        made.model(
            iterator,
            batches * PERIOD,
            [
                node(1, "Prefetch", 2, elements=batches, produced=size),
                node(2, "Map", 3, elements=batches * BATCH, busy=batches * input_cpu, produced=size),
                node(3, "Range", elements=batches * BATCH, produced=batches * BATCH * 8),
            ],
        )
    made.machine(10, cpus=1, got=got, waiting=waiting)
    read(made, tables)
    return made


FIXTURES = Fixtures(
    firing=lambda: job(given(selects())),
    expected=Expected(
        severity="medium",
        cost=0.24,
        where=(("train.py", 15), ("train.py", 71), ("train.py", LINE)),
        metrics=("read_bytes", "batch_bytes", "unread_ratio", "stage_ratio"),
        title=("30.5 MiB", "3.05 MiB", "10 % of float32 [8, 1000000]"),
        introduced="data preparation",
        exposed="training",
        pipeline_stage="preprocessing",
        remedy="hand-over-what-is-read",
        basis="modelled",
    ),
    silent=lambda: job(given(selects(WIDTH))),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: job(given(selects()), 8 * MS),
    at=lambda: job(given(selects()), 9 * MS),
    edges={
        "min_unread_ratio": Edge(below=lambda: job(given(selects(701_000))), at=lambda: job(given(selects(699_000))))
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def called(graph: Graph, x: Node, *, more: int = 0, of: str = "resource[]") -> Node:
    """Hands a batch to a function that takes a tenth of it, and many other things."""
    inner = graph.tables.graph("f", name="inner")
    others = [graph.op(f"v{i}", "VarHandleOp", outputs=of) for i in range(more)]
    call = graph.op("call", "StatefulPartitionedCall", x, *others[:63], outputs="float32[?,100000]")
    graph.call(call, inner)
    y = inner.op("y", "Placeholder", outputs=WHOLE)
    for i in range(more):
        inner.op(f"w{i}", "Placeholder", outputs=of)
    inner.op("gone", "Sum", selects()(inner, y), outputs="float32[]")
    return call


def keyed(graph: Graph, x: Node) -> Node:
    """Hands a batch to a function in the order of the keys, whose arguments are in the order of the dictionary."""
    inner = graph.tables.graph("f", name="inner")
    small = graph.op("small", "Placeholder", outputs="float32[?,4]")
    call = graph.op("call", "StatefulPartitionedCall", x, small, outputs="float32[?,4]")
    graph.call(call, inner)
    y = inner.op("small", "Placeholder", outputs="float32[?,4]")
    inner.op("x", "Placeholder", outputs=WHOLE)
    inner.op("sum", "Sum", y, outputs="float32[]")
    return call


@pytest.mark.parametrize(
    "takes",
    [
        None,
        keyed,
        lambda graph, x: selects()(graph, graph.op("cast", "Cast", x, outputs=WHOLE.replace("32", "16"))),
        called,
        lambda graph, x: called(graph, x, more=100),
        lambda graph, x: graph.op("size", "Shape", x, outputs="int32[2]"),
    ],
    ids=[
        "nothing-takes-it",
        "not-by-a-function",
        "passed-on",
        "by-a-function",
        "by-one-with-many-variables",
        "only-its-shape",
    ],
)
def test_what_is_not_read(takes: Takes | None) -> None:
    """What only passes a tensor on, or asks for its shape, reads nothing of it."""
    assert "INP014" in codes(job(given(takes)))


@pytest.mark.parametrize(
    "takes",
    [
        lambda graph, x: x,
        lambda graph, x: graph.op("returned", "Identity", x, outputs=WHOLE),
        lambda graph, x: [selects(500_000)(graph, x), graph.op("rest", "StridedSlice", x, outputs="float32[?,500000]")][
            0
        ],
        lambda graph, x: graph.op("loop", "While", x, outputs=WHOLE),
    ],
    ids=["an-op", "returned", "parts-that-are-all", "a-loop"],
)
def test_what_is_read(takes: Takes) -> None:
    """An op that takes all, a result, parts that add up, and what is not known read all of a batch."""
    assert "INP014" not in codes(job(given(takes)))


def test_graphs_that_are_cut() -> None:
    """Of a graph that was not read to its end, nobody knows what takes a batch."""
    assert "INP014" not in codes(job(given(None, state="capped")))


def test_cpus_that_are_free() -> None:
    """Bytes that nobody waits for, made by a CPU that is free, cost nothing."""
    assert "INP014" not in codes(job(given(selects()), waiting=0.0, got=0.9))
