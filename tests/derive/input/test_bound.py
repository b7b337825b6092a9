"""How fast a pipeline could be, by hand-made numbers."""

from __future__ import annotations

import math

import pytest
from tests.derive.sessions import MS

from stepscope.derive.input import bound
from stepscope.derive.input.bound import COPY_BYTES_S, PASS_NS, ConsumedPipeline, Consumer, StageWork


def consumer(*, cores: float = 2.0, step: float = 1 * MS, overlaps: bool = True, outside: float = 0.0) -> Consumer:
    """A step that computes on one CPU."""
    return Consumer(cores=cores, step_ns=step, step_cpu_ns=step, overlaps=overlaps, outside_ns=outside)


def stage(
    name: str,
    cpu: float,
    *,
    most: float = 1.0,
    stretch: int = 1,
    depth: int = 1,
    blocked: float = 0.0,
    calls: float = 0.0,
) -> StageWork:
    """A stage of 10 elements of 100 bytes."""
    return StageWork(
        name=name,
        cpu_ns=cpu,
        most=most,
        stretch=stretch,
        depth=depth,
        blocked_ns=blocked,
        calls_ns=calls,
        elements=10,
        bytes=1000,
    )


def chain(*stages: StageWork, to: Consumer | None = None) -> ConsumedPipeline:
    """A pipeline and its consumer."""
    return ConsumedPipeline(stages=stages, consumer=to or consumer())


def test_work_that_may_have_any_number_of_threads_is_divided_over_the_cores() -> None:
    """The CPU time of all stages and of the step, over the cores."""
    found = bound.pace(chain(stage("Map", 9 * MS, most=math.inf)))
    assert found.binds == "cores"
    assert found.ns == pytest.approx(5 * MS)


def test_what_runs_on_one_thread_is_a_bound() -> None:
    """Stages of one stretch run one after the other, and more cores do not help them."""
    layout = chain(
        stage("Batch", 2 * MS), stage("Generator", 6 * MS), stage("Map", 1 * MS, stretch=2), to=consumer(cores=16)
    )
    found = bound.pace(layout)
    assert (found.binds, found.stage) == ("stage", 1)
    assert found.ns == pytest.approx(8 * MS)


def test_a_stage_that_waits_gains_by_threads_on_one_core() -> None:
    """Waits of several threads overlap; their CPU time does not."""
    layout = chain(stage("Map", 1 * MS, blocked=19 * MS), to=consumer(cores=1))
    assert bound.pace(layout).ns == pytest.approx(20 * MS)
    found = bound.pace(bound.parallel(layout, 0))
    assert found.binds == "cores"
    assert found.ns == pytest.approx(2 * MS)


def test_the_step_is_a_bound() -> None:
    """No input makes the job faster than its step."""
    found = bound.pace(chain(stage("Map", 1 * MS), to=consumer(step=7 * MS, cores=4)))
    assert found.binds == "step"
    assert found.ns == pytest.approx(7 * MS)


def test_without_a_prefetch_the_step_comes_on_top() -> None:
    """No batch is made while the step computes, until there is a prefetch."""
    layout = chain(stage("Map", 6 * MS), to=consumer(step=4 * MS, overlaps=False))
    assert bound.pace(layout).ns == pytest.approx(10 * MS)
    assert bound.pace(bound.prefetched(layout)).ns == pytest.approx(6 * MS)


def test_a_full_disk_binds_until_a_cache_keeps_what_it_gives() -> None:
    """What is in memory is not read."""
    layout = chain(stage("Map", 1 * MS), stage("TFRecord", 1 * MS, depth=2), to=consumer(outside=50 * MS))
    assert bound.pace(layout).binds == "disk"
    assert bound.pace(bound.cached(layout, 0, read=10)).binds != "disk"


def test_a_cache_spares_what_feeds_it() -> None:
    """Stages below it do nothing more; what reads it pays for each element, and for a shuffle after it."""
    other = stage("Map", 3 * MS, depth=2)
    layout = chain(stage("Zip", 0.0), stage("Map", 5 * MS, depth=2), stage("Range", 2 * MS, depth=3), other)
    found = bound.cached(layout, 1, read=10, shuffled=10)
    assert [s.cpu_ns for s in found.stages] == [0.0, pytest.approx(20 * PASS_NS), 0.0, 3 * MS]
    batched = bound.cached(layout, 1, read=10, batch_bytes=1000)
    assert batched.stages[1].cpu_ns == pytest.approx(20 * PASS_NS + 1e12 / COPY_BYTES_S)


def test_elements_that_are_discarded_before_a_stage_cost_it_nothing() -> None:
    """Its work shrinks with what reaches it."""
    found = bound.fewer(chain(stage("Map", 8 * MS)), 0, 0.25)
    assert (found.stages[0].cpu_ns, found.stages[0].elements) == (2 * MS, 2.5)


def test_a_function_of_whole_batches_is_called_once() -> None:
    """Ten calls become one; work beyond the calls stays."""
    found = bound.batched(chain(stage("Map", 13 * MS, calls=10 * MS)), 0)
    assert found.stages[0].cpu_ns == pytest.approx(1 * MS + 3 * MS + 1e12 / COPY_BYTES_S)


def test_cores_are_asked_about_until_they_bind_no_more() -> None:
    """40 ms of maps and a step of 6 ms: 46 ms on one core, and from 8 cores on the step is the slowest."""
    best = chain(stage("Map", 40 * MS, most=math.inf), to=consumer(cores=2, step=6 * MS))
    now = chain(stage("Map", 40 * MS), to=consumer(cores=2, step=6 * MS))
    assert bound.core_counts(now, best) == [1, 2, 4, 8]
    at = {cores: bound.pace(bound.on_cores(best, cores)) for cores in (1, 2, 4, 8)}
    assert [at[cores].ns for cores in (1, 2, 4, 8)] == pytest.approx([46 * MS, 23 * MS, 11.5 * MS, 6 * MS])
    assert [at[cores].binds for cores in (1, 2, 4, 8)] == ["cores", "cores", "cores", "step"]
    assert bound.core_counts(now, now) == [1, 2]
