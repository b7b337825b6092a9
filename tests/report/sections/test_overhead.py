"""The account of what measuring cost is arithmetic on what was recorded."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job
from tests.detectors.jobs import REPORT

from stepscope.model.log.eager import EagerOps
from stepscope.model.log.events import AgentCost
from stepscope.model.report.overhead import Overhead
from stepscope.report.sections import overhead
from stepscope.wire.call_cost import COOLING_NS, LIGHT_NS, MISSES_NS, executed_ns, wrapped_ns
from stepscope.wire.kinds import Flag, Kind

PERIOD = 10 * MS
STEPS = 102
"""A hundred of them steady."""
LOW, USUAL, HIGH = wrapped_ns(1000)


def stepped(records: int) -> Job:
    """Steps of 10 ms with so many records in each."""
    job = Job()
    job.step().every(PERIOD, STEPS, dur=0)
    other = job.call(Kind.SYNC, "numpy")
    for k in range(records - 1):
        other.every(PERIOD, STEPS, dur=US, start=(k + 1) * 100 * US)
    return job


def test_calls_cost_what_was_calibrated() -> None:
    """Each wrapped call costs what a step of 10 ms, with caches full of other things, makes of its calibrated time."""
    job = stepped(1)
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    cost = overhead.account(job.view())
    assert cost.ratio * PERIOD == pytest.approx(USUAL, rel=0.01)
    assert cost.low * PERIOD == pytest.approx(LOW, rel=0.02)
    assert cost.high * PERIOD == pytest.approx(HIGH, rel=0.01)
    assert (cost.records, cost.record_ns, cost.call_ns) == (100, 1000, round(cost.ratio * PERIOD))
    assert msgspec.json.decode(msgspec.json.encode(cost), type=Overhead) == cost


def test_calls_that_follow_each_other_find_the_caches_warm() -> None:
    """What a call costs beyond its own instructions falls with the time between two of its kind."""
    more = {}
    for apart in (US, 20 * US, 200 * US):
        job = Job()
        job.event(AgentCost(record_ns=400, wrapper_ns=600))
        job.step().every(PERIOD, STEPS, dur=0)
        for k in range(40):
            job.call(Kind.SYNC, "numpy").every(PERIOD, STEPS, dur=100, start=(k + 1) * apart)
        more[apart] = overhead.account(job.view()).ratio * PERIOD / 41 - executed_ns(1000)
    assert more[US] < 0.1 * MISSES_NS[1]  # the first of each step is cold
    assert more[20 * US] == pytest.approx(MISSES_NS[1] / 3, rel=0.15)
    assert more[200 * US] == pytest.approx(MISSES_NS[1] * 5 / 6, rel=0.05)


def test_the_median_of_the_calibrations_counts() -> None:
    """One calibration on a busy machine does not decide."""
    job = stepped(1)
    job.event(*(AgentCost(record_ns=n, wrapper_ns=0) for n in (300, 400, 9000)))
    assert overhead.account(job.view()).record_ns == 400


def test_a_run_too_short_to_calibrate_takes_the_documented_costs() -> None:
    """Without a calibration the published costs are taken."""
    cost = overhead.account(stepped(1).view())
    assert cost.record_ns == overhead.DEFAULT_RECORD_NS + overhead.DEFAULT_WRAPPER_NS


def test_counted_calls_cost_as_recorded_ones() -> None:
    """What a call costs is its wrapper, recorded or counted: here 50 us apart."""
    job = stepped(1)
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    job.call(Kind.SYNC, "float").counted(50 * PERIOD + US, calls=10_000, total=MS)
    cost = overhead.account(job.view())
    each = executed_ns(1000) + MISSES_NS[0] * 50 / (50 + COOLING_NS[0] / 1e3)
    assert cost.low * 100 * PERIOD == pytest.approx(LOW * 100 + each * 10_000, rel=0.01)


def test_calls_of_rests_cost_a_light_wrapper() -> None:
    """A rest is part of the time, its calls were only counted."""
    job = Job()
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    job.function().every(PERIOD, 50, dur=5 * MS)
    job.gap(49 * PERIOD + 6 * MS, 51 * PERIOD - 6 * MS, 50, Kind.EXECUTION)
    job.function().every(PERIOD, 50, dur=5 * MS, start=100 * PERIOD)
    cost = overhead.account(job.view())
    span = 148 * PERIOD  # from the first steady step to the start of the last one
    assert cost.low * span == pytest.approx(97 * LOW + LIGHT_NS[0] * 50, rel=0.03)
    assert cost.rest_ratio == pytest.approx(51 / 148, rel=0.02)


@pytest.mark.parametrize(("every", "apart"), [(1, US), (4, 5 * US)])
@pytest.mark.parametrize("kind", [Kind.APPLY, Kind.PYFUNC])
def test_calls_that_nothing_detaches_cost_as_much_in_gaps(kind: Kind, every: int, apart: int) -> None:
    """A hook runs for every step, in a gap as elsewhere, and so it does if its record is then dropped."""
    job = Job()
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    job.step().every(PERIOD, 50, dur=0)
    call = job.call(kind, "optimizer step", role="optimizer")
    call.every(PERIOD, 50, dur=0, start=apart)
    begin, calls = 49 * PERIOD + 6 * MS, 4000
    job.gap(begin, 51 * PERIOD - 6 * MS, 0)
    flags = Flag.THINNED if every > 1 else 0
    call.every(every * 100 * US, calls // every, dur=0, start=begin + US, flags=flags)
    if every > 1:
        call.counted(begin + apart, calls=calls - calls // every, total=0)
    job.step().every(PERIOD, 50, dur=0, start=100 * PERIOD)
    call.every(PERIOD, 50, dur=0, start=100 * PERIOD + apart)
    cost = overhead.account(job.view())
    each = executed_ns(1000) + MISSES_NS[0] * 100 / (100 + COOLING_NS[0] / 1e3)
    spent = cost.low * 148 * PERIOD - 4 * 49 * LOW  # steps and calls outside of the gap
    assert spent == pytest.approx(calls * each, rel=0.15)


def test_the_agents_thread_counts_with_its_cpu_time() -> None:
    """Ticks add the thread's CPU time of the second before them to the account, not to its lower bound; the second in
    which the steps begin is left out: it holds what came before them."""
    job = Job()
    job.step().every(PERIOD, 402, dur=0)
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    job.call(Kind.TICK, "tick").every(1000 * MS, 4, dur=100 * US, start=20 * MS + US, thread=9)
    cost = overhead.account(job.view())
    assert cost.low * 400 * PERIOD == pytest.approx(LOW * 400, rel=0.02)
    assert cost.ratio * 400 * PERIOD == pytest.approx(USUAL * 400 + 3 * 100 * US, rel=0.01)


def test_the_sidecar_is_a_share_of_a_core() -> None:
    """What the sidecar used is told apart, per core."""
    job = stepped(1)
    job.machine(10)
    job.hosts.own_cpu_ns[:] = job.hosts.at_ns // 200
    job.hosts.own_cpu_ns[-1] += 10 * PERIOD  # the session is written after the last step
    assert overhead.account(job.view()).sidecar_core_ratio == pytest.approx(0.005)


def test_without_steps_only_the_sidecar_is_accounted() -> None:
    """No step, no share of step time."""
    cost = overhead.account(Job().view())
    assert (cost.ratio, cost.low, cost.high, cost.sidecar_core_ratio) == (0, 0, 0, 0)


def test_samples_of_the_cpu_timer_are_accounted() -> None:
    """A CPU sample is taken on the thread of the steps: it costs, other than one of the agent's thread."""
    job = Job()
    job.step().every(PERIOD, STEPS, dur=0)
    job.event(AgentCost(record_ns=400, wrapper_ns=600))
    before = overhead.account(job.view()).ratio
    number = job.stack(Frame(SCRIPT, "main", REPORT))
    job.records += [
        (job.records[0])._replace(start_ns=i * 25 * MS, dur_ns=25 * MS, kind=Kind.SAMPLE, name=number, flags=Flag.CPU)
        for i in range(4, 380)
    ]
    assert overhead.account(job.view()).ratio > before


def test_ops_that_looks_note_are_accounted() -> None:
    """A look costs the steps in which it notes their ops, and no others."""
    job, other = Job(), Job()
    for each, at in ((job, 2 * PERIOD), (other, 2 * STEPS * PERIOD)):
        each.step().every(PERIOD, STEPS, dur=0)
        each.event(AgentCost(record_ns=400, wrapper_ns=600), EagerOps(at=at, dur=PERIOD, ops=300))
    assert overhead.account(job.view()).ratio > overhead.account(other.view()).ratio
