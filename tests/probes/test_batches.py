"""What is seen of the batches that steps are given, and what follows for the ops that work on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.causes.graph import wide_inputs
from stepscope.causes.graph.operands import wasteful_operands
from stepscope.derive.graph.index import GraphIndex
from stepscope.model.log.events import AgentDiagnostic
from stepscope.model.log.program import InputSeen
from stepscope.model.session.session import Worker, WorkerInfo
from stepscope.tables.records import RecordTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded

pytestmark = [pytest.mark.tf, pytest.mark.slow]

ROWS, COLUMNS, TAGS = 32, 1_000, 5


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Recorded]) -> Recorded:
    """The program ``batches``."""
    return recorded("batches")


def on(run: Recorded, mark: str) -> list[InputSeen]:
    """The batches that the marked line passed."""
    return [seen for seen in run.all(InputSeen) if seen.line == run.line(mark)]


def test_the_job_is_as_without_us(run: Recorded) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def test_equal_rows_are_counted(run: Recorded) -> None:
    """Of each argument of a function, by its position; the first calls are enough."""
    seen = {(one.position, one.rows, one.distinct, one.block) for one in on(run, "repeated")}
    assert seen == {(0, ROWS, 1, ROWS), (1, ROWS, ROWS, 1)}
    assert len(on(run, "repeated")) == 4


@pytest.mark.parametrize("mark", ["iterated", "fitted", "on batch", "fed"])
def test_zeros_are_counted(run: Recorded, mark: str) -> None:
    """In what iterators yield, and fits, methods of one batch and sessions are given."""
    assert {round(one.zeros_ratio, 4) for one in on(run, mark) if one.shape[1:] == (COLUMNS,)} == {1 - TAGS / COLUMNS}


def test_one_value_everywhere_is_no_batch(run: Recorded) -> None:
    """Programs build models with such arrays."""
    assert on(run, "one value everywhere") == []


def index_of(run: Recorded) -> GraphIndex:
    """The graphs that were read."""
    info = WorkerInfo(key="1", pid=1)
    return GraphIndex(Worker(info=info, records=RecordTable.empty(), events=run.events, graphs=run.graphs))


def test_arguments_that_are_cast_down(run: Recorded) -> None:
    """An array of which the graph takes the smaller half; not one that is cast up, or used as it is."""
    found = wide_inputs.build(index_of(run), run.all(InputSeen))
    assert found is not None
    assert (found.seen.line, found.seen.dtype, found.used) == (run.line("float64"), "float64", "float32")
    assert 0.45 < found.needless_ratio < 0.5


def test_the_ops_that_work_on_them(run: Recorded) -> None:
    """Equal rows up to the op that joins others, nearly empty matrices in products; not rows that are looked up."""
    index = index_of(run)
    found = wasteful_operands.build(index, ROWS, run.all(InputSeen))
    marks = {
        run.line(mark): mark
        for mark in ("every row", "one row", "four rows", "joined", "zeros", "half zeros", "session")
    }
    lines = [(work, index.maker_of(work.op)[0]) for work in found]
    said = {(marks.get(line[2], "elsewhere"), work.waste) for work, line in lines if line is not None}
    assert said == {("every row", "all"), ("four rows", "all"), ("zeros", "zeros"), ("session", "zeros")}
    parts = {work.waste: work.part for work in found}
    assert parts["zeros"] > 0.8
