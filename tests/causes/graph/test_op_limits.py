"""Whether ops are as fast as they can be: their time in the steps against their time alone."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import Job
from tests.detectors.replay_jobs import replayed, times

from stepscope.causes.graph import op_limits
from stepscope.causes.graph.op_limits import OpLimits
from stepscope.derive.view import SessionView


def limits(job: Job) -> OpLimits:
    """What is known of a job's ops."""
    found = op_limits.build(SessionView(job.session()))
    assert found is not None
    return found


def test_as_fast_as_alone_is_proven() -> None:
    """An op at 80 % of what it reaches alone explains its share of the call."""
    found = limits(replayed(50_000, times(40_000)))
    assert found.ops[0].proven
    assert found.ops[0].ratio == pytest.approx(0.8)
    assert 0 < found.explained_ratio <= 1
    assert "MatMul at 80 %" in found.text


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (replayed(50_000, times(20_000)), "2.5 times as long"),
        (replayed(50_000), "not measured"),
        (replayed(20_000, times(50_000)), "no comparison"),
        (replayed(50_000, times(45_000, waited=0.5), others=0.5), "other processes"),
        (replayed(50_000, times(45_000), fixed_ns=2e7), "fixed cost"),
        (replayed(50_000, times(45_000), times(20_000, "float32"), kind="float64"), "float32"),
        (replayed(50_000, times(45_000), times(100_000, "batch")), "batches 8 times"),
        (replayed(50_000, times(45_000), times(20_000, threads=2)), "2 threads"),
    ],
    ids=["slower", "unmeasured", "otherwise", "not-alone", "small", "double", "batch", "threads"],
)
def test_what_is_not_proven_says_why(job: Job, why: str) -> None:
    """Each reason refutes the proof on its own."""
    found = limits(job)
    assert why in found.ops[0].why
    assert found.explained_ratio == 0
    assert "none of it" in found.text


def test_fewer_threads_than_cpus_need_a_measurement_with_all() -> None:
    """A job with one thread on two CPUs is proven only if two threads were measured undisturbed."""
    one = times(45_000, threads=1)
    for more, why in ((times(40_000, threads=2), ""), (times(40_000, threads=2, waited=0.5), "one thread of 2 CPUs")):
        job = replayed(50_000, one, more, others=0.5)
        job.resources["replays"] = msgspec.structs.replace(job.resources["replays"], threads=1)
        found = limits(job).ops[0]
        assert why in found.why
        assert found.proven == (not why)


def test_threads_that_wait_for_each_other_are_alone() -> None:
    """An op whose own threads are more than the CPUs is compared, if no other process had a CPU meanwhile."""
    assert limits(replayed(50_000, times(45_000, waited=0.5))).ops[0].proven


@pytest.mark.parametrize(("warm_us", "why"), [(18_000, ""), (50_000, "no comparison"), (8_000, "2.5 times as long")])
def test_inputs_from_the_caches_are_compared_where_memory_is_too_slow(warm_us: int, why: str) -> None:
    """Steps that run an op in less than half of its time from memory are compared with its time from the caches."""
    alone = msgspec.structs.replace(times(50_000), warm_ns=warm_us * 1e3)
    found = limits(replayed(20_000, alone)).ops[0]
    assert why in found.why
    assert found.proven == (not why)


def test_half_precision_refutes_nothing() -> None:
    """That 16 bits are faster is said of an op that is as fast as it can be."""
    found = limits(replayed(50_000, times(45_000), times(10_000, "bfloat16")))
    assert found.ops[0].proven
    assert found.ops[0].cheaper[0].factor == pytest.approx(4.5)


def test_the_time_beyond_is_a_share_of_the_step() -> None:
    """50 of 100 ms, 20 alone: 30 % of the step; equal steps make the bound equal."""
    ratio, low = limits(replayed(50_000, times(20_000))).lost()
    assert ratio == pytest.approx(0.3, abs=0.01)
    assert low == pytest.approx(0.3, abs=0.01)


def test_without_a_replay_there_is_no_answer() -> None:
    """A session of an older version says nothing."""
    job = replayed(50_000, times(20_000))
    del job.resources["replays"]
    assert op_limits.build(SessionView(job.session())) is None
