"""A pipeline in Python that is never idle, and what a step would take without it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MAIN, MS, POOL, US, Job, S, filled
from tests.derive.with_steps import view_of
from tests.detectors.jobs import PERIOD, STEPS, keras_fit, train_loop

from stepscope.causes.input import input_cause
from stepscope.causes.system.producer import Producer
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.tables.findings import Finding
from stepscope.tables.records import ThreadTable

CALL = 900 * US
PAUSE = 100 * US


def hidden(*, calls: int = 100, own: int = 10, producer: int = 40, keras: bool = False, role: str = "generator") -> Job:
    """Compiled steps of 100 ms that take their batches themselves; ``calls`` calls of Python, each 0.9 ms, one after
    another with 0.1 ms between them, then a pause until the next step. CPU time in percent of a core."""
    job = keras_fit(PERIOD - MS) if keras else train_loop(PERIOD - MS)
    job.dataset("FlatMapDataset", line=20)
    python = job.python(role, "read")
    for call in range(calls):
        python.every(PERIOD, STEPS, dur=CALL, start=call * (CALL + PAUSE), thread=POOL)
    job.machine(10, cpus=2, got=(own + producer) / 100)
    job.thread_cpu(10, {MAIN: own, POOL: producer})
    return job


def made(job: Job) -> Producer:
    """What is derived."""
    cause = view_of(job).get(input_cause.build)
    assert cause is not None
    assert cause.producer is not None
    return cause.producer


def found(job: Job) -> list[Finding]:
    """Findings of the two detectors of Python in the input."""
    return [f for f in run(ALL, job.view())[0] if f.code in {"INP002", "INP003"}]


def test_short_pauses_belong_to_the_calls() -> None:
    """Pauses as long as usual are work around a call; one that lasts until the next step is idleness."""
    assert made(hidden()).busy_ratio == pytest.approx(0.999, abs=0.002)
    assert made(hidden(calls=50)).busy_ratio == pytest.approx(0.5, abs=0.002)
    assert made(hidden()).python_ratio == pytest.approx(0.9, abs=0.001)


def test_cpu_time_is_split() -> None:
    """Threads that ran the input's Python on one side, the rest of the process on the other."""
    cpu = made(hidden(own=30, producer=40))
    assert [cpu.cpu_ratio, cpu.own_ratio] == pytest.approx([0.4, 0.3])
    assert list(cpu.step_ratio()) == pytest.approx([0.15, 0.3])


@pytest.mark.parametrize(("role", "code"), [("generator", "INP003"), ("numpy_function", "INP002")])
@pytest.mark.parametrize("keras", [False, True])
def test_what_never_pauses_sets_the_pace(*, keras: bool, role: str, code: str) -> None:
    """Without any model of the iterator; the cost lies between the CPU time of the rest on one core and on all."""
    (finding,) = found(hidden(keras=keras, role=role))
    assert (finding.code, finding.cost.basis) == (code, "modelled")
    assert [finding.cost.low, finding.cost.high] == pytest.approx([0.895, 0.945], abs=0.01)
    assert "without a break" in finding.title


def test_what_pauses_does_not() -> None:
    """A pipeline that waits for the step in between is ahead of it."""
    assert found(hidden(calls=80)) == []


def test_a_step_that_computes_may_be_as_slow() -> None:
    """Where the rest of the job uses most of a core, both may just take equally long."""
    assert found(hidden(own=90)) == []


def test_neighbours_leave_it_open() -> None:
    """CPU time of a starved job says little."""
    job = hidden()
    job.machine(10, cpus=2, got=0.5, waiting=1.0, others=1.5)
    cause = view_of(job).get(input_cause.build)
    assert cause is not None
    assert cause.producer is None


def test_threads_that_follow_a_producer_are_the_input_s() -> None:
    """Keras makes new ones each epoch, and records may name only the first."""
    job = hidden(own=30, producer=0)
    seconds = np.arange(11, dtype=np.int64) * S
    later = seconds[2:]
    rows = [
        (seconds[:1], 1000 + POOL, 0),
        (later, 2000, 40),
        (seconds, 1000 + MAIN, 30),
    ]
    job.threads = ThreadTable.concat(
        filled(ThreadTable, len(at), at_ns=at, pid=at * 0 + job.pid, native=at * 0 + native, run_ns=at // 100 * share)
        for at, native, share in rows
    )
    job.machine(10, cpus=2, got=0.7)
    assert made(job).cpu_ratio == pytest.approx(0.4, abs=0.08)
