"""The stages of an input, from the reads of its iterators."""

from __future__ import annotations

from tests.derive.sessions import MS, Job, node

from stepscope.derive.input import model_reads, stages

PERIOD = 100 * MS


def test_reads_of_op_traces_are_in_no_order_of_time() -> None:
    """A capture that is listed first may be the later one: no difference is taken, and the stages are there."""
    job = Job()
    job.loop("fit").at(0, 100 * PERIOD)
    job.execution("train").every(PERIOD, 100, dur=90 * MS, arg=1)
    iterator = job.iterator()
    for at, taken in ((50, 11), (60, 10)):
        nodes = [node(1, "Map", 2, elements=taken, busy=taken * MS), node(2, "Range", elements=taken)]
        job.model(iterator, at * PERIOD + PERIOD // 2, nodes, [70_000] * (taken - 1))
    reads, _ = model_reads.read_all(job.worker())
    found = stages.build(job.steps(), reads[::-1], {}, {})
    assert [stage.name for stage in found] == ["Map", "Range"]
