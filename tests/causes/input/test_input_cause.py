"""Why steps wait for their input: which stage, or which Python inside of the pipeline."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MAIN, MS, POOL, SCRIPT, US, Job, node
from tests.derive.with_steps import view_of
from tests.detectors.jobs import PERIOD, STEPS, pulled, train_loop
from tests.detectors.lock_jobs import OTHER, beside

from stepscope.causes.input import input_cause
from stepscope.causes.input.input_cause import InputCause
from stepscope.causes.job import hidden_wait
from stepscope.causes.system import caches
from stepscope.wire.kinds import Flag


def cause(job: Job) -> InputCause:
    """The cause that is derived."""
    found = view_of(job).get(input_cause.build)
    assert found is not None
    return found


def test_a_stage_of_ops_is_the_limit() -> None:
    """Without user Python the slowest stage is what limits."""
    found = cause(pulled(60 * MS))
    assert (found.limit, found.python_ratio, found.function) == ("stage", 0, None)
    assert found.wait_ratio == pytest.approx(0.6 - 0.003)  # what handing over a ready batch costs is no wait
    assert found.stage is not None
    assert [d.line for d in found.stage.datasets] == [71]


@pytest.mark.parametrize(
    ("role", "limit"),
    [
        ("generator", "generator"),
        ("pydataset", "generator"),
        ("numpy_function", "python-function"),
        ("py_function", "python-function"),
    ],
)
def test_python_that_explains_the_stage_is_the_limit(role: str, limit: str) -> None:
    """User Python that takes most of the slowest stage's time is the cause, by its role."""
    found = cause(pulled(60 * MS, python=50 * MS, role=role))
    assert found.limit == limit
    assert found.function is not None
    assert (found.function.role, found.function.calls) == (role, 98)
    assert found.python_ratio == pytest.approx(0.5)


def test_python_beside_the_slow_stage_is_not_the_limit() -> None:
    """Cheap user Python does not take the blame of a slow stage of ops."""
    assert cause(pulled(60 * MS, python=5 * MS, role="numpy_function")).limit == "stage"


@pytest.mark.parametrize(("python", "limit"), [(8 * MS, "stage"), (10 * MS, "python-function")])
def test_python_of_the_stages_own_code_needs_less(python: int, limit: str) -> None:
    """Where the stage's own function calls it, what calling Python costs around it counts with it, from 15 %."""
    assert cause(pulled(60 * MS, python=python, role="numpy_function", linked=True)).limit == limit


def test_a_generator_without_a_model_is_the_limit() -> None:
    """Where tf.data keeps no model, Python that runs for at least half of the wait is the cause."""
    job = train_loop(20 * MS, offset=60 * MS)
    job.nexts().every(PERIOD, STEPS, dur=60 * MS, arg=job.iterator())
    assert cause(job).limit == "unknown"
    job.python("generator", "batches").every(PERIOD, STEPS, dur=31 * MS, thread=POOL)
    assert cause(job).limit == "generator"


def test_what_a_starved_cpu_explains_is_not_the_inputs() -> None:
    """The wait is less by the share of CPUs that others took. At most all of it is saved: rivals slow both down."""
    job = pulled(60 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    found = cause(job)
    assert found.wait_ratio == found.saved_low == pytest.approx(0.2985)
    assert found.saved_ratio == pytest.approx(1.5 * 0.2985)
    assert found.saved_high == pytest.approx(2 * 0.2985)


def test_python_on_two_threads_at_once_covers_its_time_once() -> None:
    """Calls that overlap on two threads cover the time that either runs."""
    job = pulled(60 * MS, python=40 * MS, role="py_function")
    job.python("py_function", "other", line=90).every(PERIOD, STEPS, dur=40 * MS, start=20 * MS, thread=3)
    assert cause(job).python_ratio == pytest.approx(0.6)


def test_python_that_stretches_the_step_is_told() -> None:
    """What user Python of the pipeline adds to the gaps between two batches is its cost besides the wait."""
    job = Job()
    job.loop("fit").at(0, STEPS * PERIOD)
    job.execution("train").every(PERIOD, STEPS, dur=90 * MS, arg=1)
    iterator = job.iterator(job.dataset("MapDataset", line=71, fn_name="f", fn_file=SCRIPT, fn_line=15, fn_end_line=18))
    gaps = [50 * MS // US] * 20 + [60 * MS // US] * 60
    job.model(iterator, 80 * PERIOD + 50 * MS, [node(1, "Map", elements=81, busy=81 * 80 * MS)], gaps)
    job.python("py_function", "f").every(PERIOD, STEPS, dur=80 * MS, thread=POOL)
    found = cause(job)
    assert found.limit == "python-function"
    assert found.wait_ratio == pytest.approx(0.425, abs=0.01)
    assert found.disturbed_ratio == pytest.approx(0.8 * 0.075, abs=0.002)


WAIT = 0.497
"""Of 50 ms in 100, less what handing over a ready batch costs."""


def locked(*, calls: int, cpu: int, got: float = 1.0, role: str = "py_function") -> InputCause:
    """Half of each step waits; Python of the pipeline runs for 60 of 100 ms in ``calls`` calls."""
    job = pulled(50 * MS, python=1, role=role)
    python = job.python(role, "tokenise")
    for call in range(calls):
        python.every(PERIOD, STEPS, dur=60 * MS // calls, start=call * 60 * MS // calls, thread=POOL)
    job.machine(10, cpus=2, got=got)
    job.thread_cpu(10, {MAIN: 5, POOL: cpu})
    return cause(job)


def test_what_surrounds_each_call_of_python_goes_with_it() -> None:
    """400 calls a step of py_function take 10 ms more than their records say; a PyDataset is not called by an op."""
    assert locked(calls=1, cpu=95).disturbed_ratio == pytest.approx(0.6 - WAIT, abs=0.001)
    assert locked(calls=400, cpu=95).disturbed_ratio == pytest.approx(0.7 - WAIT, abs=0.001)
    assert locked(calls=400, cpu=95, role="pydataset").disturbed_ratio == pytest.approx(0.6 - WAIT, abs=0.001)


def test_python_takes_no_more_from_the_step_than_its_threads_computed() -> None:
    """What sleeps in Python holds no lock: the CPU time of its threads is the most that it can cost."""
    assert locked(calls=400, cpu=65).disturbed_ratio == pytest.approx(0.65 - WAIT)
    assert locked(calls=400, cpu=10).disturbed_ratio == 0


def test_a_process_on_several_cores_is_not_held_by_the_lock() -> None:
    """Where more than one core is used, things do run side by side."""
    assert locked(calls=400, cpu=95, got=1.6).disturbed_ratio == 0


def crowded(*, evaluated: int = 0, fed: bool = True) -> InputCause:
    """A PyDataset takes 60 of 100 ms on the one CPU, the rest of the process 20; ``evaluated``: ms of an evaluation."""
    job = pulled(50 * MS, python=60 * MS, role="pydataset")
    job.loop("evaluate").every(PERIOD, STEPS, dur=evaluated * MS, start=75 * MS, flags=Flag.NESTED)
    if fed:
        job.python("pydataset", "test_batches").every(PERIOD, STEPS, dur=evaluated * MS, start=75 * MS, thread=POOL)
    job.machine(10, cpus=1, got=0.8, waiting=0.2)
    job.thread_cpu(10, {MAIN: 20, POOL: 60})
    return cause(job)


@pytest.mark.parametrize(("cpus", "others", "most"), [(2, 0.9, 0.9), (8, 0.0, 0.02)])
def test_what_may_wait_for_the_lock_is_the_upper_end_beside_others_only(cpus: int, others: float, most: float) -> None:
    """tf.data sees no wait, as the step is late itself. Where others take CPUs, the CPU time of the rest says how much
    of it may be the lock; on free CPUs a step that computes on several cores computes.
    """
    job = Job()
    job.loop("fit").at(0, STEPS * PERIOD)
    job.execution("train").every(PERIOD, STEPS, dur=95 * MS, arg=1)
    iterator = job.iterator(job.dataset("FlatMapDataset", line=20))
    job.model(iterator, 80 * PERIOD + 50 * MS, [node(1, "Generator", elements=81, busy=81 * 90 * MS)], [99_000] * 80)
    job.python("generator", "read").every(PERIOD, STEPS, dur=90 * MS, thread=POOL)
    job.machine(10, cpus=cpus, got=1.4 if cpus > 2 else 1.0, waiting=1.0 if others else 0.0, others=others)
    job.thread_cpu(10, {MAIN: 20, POOL: 80})
    found = cause(job)
    assert (found.producer is None) == bool(others)
    assert found.saved_high == pytest.approx(most, abs=0.02)


@pytest.mark.parametrize(
    ("waits", "piped", "likely", "low"), [(45, True, 0.7, 0.6), (45, False, 0.0, 0.0), (0, True, 0.0, 0.0)]
)
def test_looks_say_how_long_the_step_waits_for_the_lock(waits: int, piped: bool, likely: float, low: float) -> None:
    """Beside other processes, and with no wait for a batch: seven of nine looks that find the step's thread off its CPU
    find it waiting for the lock, which the generator has.
    """
    job = beside(70, waits=waits, elsewhere=5 if waits else 50, runs=10)
    if piped:
        job.python("generator", "count", line=12).every(PERIOD, STEPS, dur=90 * MS, thread=OTHER)
    job.machine(10, cpus=2, got=0.9, waiting=1.0, others=1.1)
    found = cause(job)
    assert found.producer is None
    assert (found.lock is not None) == bool(likely)
    assert found.saved_ratio == pytest.approx(likely, abs=0.05)
    assert found.saved_low == pytest.approx(low, abs=0.07)


def test_evaluations_that_the_same_python_feeds_get_its_time_back() -> None:
    """Where the CPUs are full: what else the process computes bounds them like the steps; others stay as they are."""
    assert crowded(evaluated=20).saved_ratio == pytest.approx(crowded().saved_ratio + 0.2, abs=0.02)
    assert crowded(evaluated=20, fed=False).saved_ratio == pytest.approx(crowded().saved_ratio, abs=0.02)


def test_the_rest_may_be_slower_by_sharing_caches() -> None:
    """At most: the likely cost does not count on it."""
    assert crowded().saved_high == pytest.approx(crowded().saved_ratio + caches.freed(0.2), abs=0.02)


@pytest.mark.parametrize(("taken", "hidden"), [(STEPS, False), (2, True)])
def test_a_wait_in_a_step_function_of_python_hides_nothing(taken: int, *, hidden: bool) -> None:
    """Keras on JAX pulls its batches inside of its call, each of them recorded; a compiled call may hide its wait."""
    job = Job()
    job.loop("fit").at(0, STEPS * PERIOD)
    job.execution().every(PERIOD, STEPS, dur=90 * MS, arg=1)
    job.nexts().every(PERIOD, taken, dur=60 * MS, start=MS)
    job.python("pydataset", "Rows.__getitem__").every(PERIOD, taken, dur=55 * MS, start=2 * MS)
    view = view_of(job)
    assert view.get(hidden_wait.build) is hidden
    if not hidden:
        assert cause(job).limit == "generator"
        assert view.anatomy.ratio("input-wait") == pytest.approx(0.6)
