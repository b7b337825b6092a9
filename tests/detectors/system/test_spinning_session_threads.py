"""CFG007 spinning-session-threads: its fixtures, and what looks like it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, Job, S
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import nothing

from stepscope.detectors.system.spinning_session_threads import DETECTOR
from stepscope.model.log.events import InferenceSession, ThreadSeen
from stepscope.tables.records import ThreadTable
from stepscope.wire.kinds import Kind

SECONDS, STEPS, STEP, RUN = 10, 100, 100 * MS, 10 * MS
POOL = 3


def spinning(
    *,
    theirs: int = 120,
    waits: int = 50,
    others: float = 0.0,
    spins: bool = True,
    threads: int = 2,
    python: int = 0,
    run: int = RUN,
) -> Job:
    """Runs of a session of 10 ms in steps of 100 ms, on two CPUs.

    Args:
        theirs: percent of a CPU that the pool's threads take.
        waits: percent of the time in which the thread of the steps waits for a CPU.
        others: CPUs that other processes take.
        spins: as the session says.
        threads: of the session.
        python: number of the pool's threads that are the job's own Python.
        run: time of a run.
    """
    job = Job()
    job.framework("onnxruntime", "1.31.1")
    job.event(
        InferenceSession(model="m.onnx", intra_op_threads=threads, spins=spins, file=SCRIPT, line=7, function="main")
    )
    job.call(Kind.INFERENCE, "m.onnx", call_file=SCRIPT, call_line=12, call_function="main").every(
        STEP, STEPS, dur=run, start=STEP - run
    )
    own = (100 - waits) / 100
    job.machine(SECONDS, cpus=2, got=own + theirs / 100, waiting=waits / 100 + 1, others=others)
    at = np.arange(SECONDS + 1, dtype=np.int64) * S
    zero = at * 0
    rows = [(1000 + MAIN, 100 - waits, waits), *((2000 + n, theirs // POOL, 0) for n in range(POOL))]
    job.threads = ThreadTable.concat(
        ThreadTable(
            at_ns=at, pid=zero + job.pid, native=zero + native, run_ns=at // 100 * ran, wait_ns=at // 100 * waited
        )
        for native, ran, waited in rows
    )
    job.event(ThreadSeen(id=MAIN, main=True, native=1000 + MAIN))
    for n in range(python):
        job.event(ThreadSeen(id=100 + n, native=2000 + n, name=f"pool_{n}"))
        job.samples([S], Frame("/job/loader.py", "augment", 9), thread=100 + n)
    return job


FIXTURES = Fixtures(
    firing=spinning,
    expected=Expected(
        severity="high",
        cost=0.45,
        where=(("train.py", 7),),
        metrics=("idle_cores", "waiting_ratio"),
        title=("ONNX Runtime's threads spin between its runs", "1 CPU of 2", "waits 50 %"),
        introduced="environment setting",
        exposed="prediction",
        pipeline_stage="preprocessing",
        remedy="no-spinning",
        basis="modelled",
    ),
    silent=lambda: spinning(theirs=15),
    not_applicable=nothing,
    missing="steps",
    below=lambda: spinning(waits=11),
    at=lambda: spinning(waits=12),
    edges={"min_cores": Edge(below=lambda: spinning(theirs=42), at=lambda: spinning(theirs=48))},
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    "job",
    [
        lambda: spinning(spins=False),
        lambda: spinning(threads=1),
        lambda: spinning(python=POOL),  # the job's own threads work
        lambda: spinning(run=80 * MS),  # the threads take what the runs need
    ],
    ids=["sleep", "no-pool", "python", "long-runs"],
)
def test_threads_that_work_do_not_spin(job: object) -> None:
    """What takes the CPUs is told from what the session's threads may do, and from when they do it."""
    assert callable(job)
    assert "CFG007" not in codes(job())


def test_what_others_take_is_not_the_sessions_doing() -> None:
    """The wait is shared as the CPUs are that the steps' thread has not."""
    alone, beside = (
        next(one for one in find(spinning(others=others)) if one.code == "CFG007") for others in (0.0, 0.6)
    )
    assert alone.cost.ratio == pytest.approx(0.45, abs=0.01)
    assert beside.cost.ratio == pytest.approx(0.45 * 1.2 / 1.8, abs=0.01)
    assert alone.cost.low == pytest.approx(0.4, abs=0.01)
    assert alone.cost.high == pytest.approx(0.5, abs=0.01)


def test_what_waits_for_them_is_not_the_loops_python() -> None:
    """The code between two runs waits half of its 90 %: it would take the other half on free CPUs."""
    found = {}
    for spins in (True, False):
        job = spinning(spins=spins)
        loop = ["def main():", "    while feed:", "        batch = clean(feed)", "        session.run(batch)"]
        job.sources[SCRIPT] = "\n".join(["", *[""] * 7, *loop])  # the run stands in line 12
        job.samples(
            [n * STEP + 40 * MS for n in range(STEPS)], Frame(SCRIPT, "main", 11), Frame("/job/c.py", "clean", 2)
        )
        found[spins] = {one.code: one.cost.ratio for one in find(job)}
    assert found[True]["INP004"] == pytest.approx(found[False]["INP004"] / 2, rel=0.01)
    assert found[True]["INP004"] + found[True]["CFG007"] == pytest.approx(0.9, abs=0.01)


def test_more_threads_than_cpus_take_turns_in_each_run() -> None:
    """Sixteen threads of a session on two CPUs, in runs that leave little between them; two threads are no crowd."""
    (crowd,) = (one for one in find(spinning(run=80 * MS, threads=16)) if one.code == "CFG007")
    assert "has 16 threads for 2 CPUs" in crowd.title
    assert crowd.cost.ratio == pytest.approx(0.5, abs=0.01)
    assert crowd.remedies[0].id == "fewer-session-threads"
    assert "CFG007" not in codes(spinning(run=80 * MS, threads=16, waits=9))
    assert "CFG007" not in codes(spinning(run=80 * MS, threads=2))


def test_what_the_jobs_own_threads_take_is_not_the_sessions_doing() -> None:
    """A third of what the steps' thread waits for is the job's own Python on another thread."""
    (found,) = (one for one in find(spinning(run=80 * MS, threads=16, python=1)) if one.code == "CFG007")
    assert found.cost.ratio == pytest.approx(0.5 * 2 / 3, abs=0.01)


def test_a_crowd_in_the_runs_takes_nothing_from_the_code_between() -> None:
    """Threads that do not spin between the runs are not what that code waits for."""
    job = spinning(run=80 * MS, threads=16)
    job.sources[SCRIPT] = (
        "\n" * 8 + "def main():\n    while feed:\n        batch = clean(feed)\n        session.run(batch)\n"
    )
    here = Frame(SCRIPT, "main", 11), Frame("/job/c.py", "clean", 2)
    job.samples([n * STEP + 10 * MS for n in range(STEPS)], *here)
    costs = {one.code: one.cost.ratio for one in find(job)}
    assert costs["INP004"] == pytest.approx(0.2, abs=0.01)
