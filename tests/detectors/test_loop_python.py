"""Where the slow Python is the loop itself, its lines are named; nobody can run the loop every N steps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, MAKE, PERIOD, REPORT, STEPS, sampled, train_loop
from tests.detectors.trend_jobs import rising, stalled

from stepscope.causes.system import caches
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.events import Code, Stack
from stepscope.tables.findings import Finding


def inlined(job: Job, *functions: str) -> Job:
    """The same job with the work of some functions written into the loop: their frames are gone."""
    gone = {c.id for c in job.events if isinstance(c, Code) and c.function in functions}
    job.events = [
        replace(e, frames=[f for f in e.frames if f[0] not in gone]) if isinstance(e, Stack) else e for e in job.events
    ]
    return job


def in_step() -> Job:
    """A helper that makes the step's call, and Python of its own after it."""
    job = train_loop(50 * MS)
    stack = (Frame(SCRIPT, "main", CALL), Frame(SCRIPT, "run_step", 20))
    job.samples([i * PERIOD + 20 * MS for i in range(STEPS)], *stack)
    job.samples([i * PERIOD + 80 * MS for i in range(STEPS)], stack[0], stack[1]._replace(line=22))
    return job


def found(job: Job) -> Finding:
    """The one finding."""
    (finding,), _, failures = run(ALL, job.view())
    assert failures == ()
    return finding


def around(job: Job) -> Job:
    """Samples of the step's call, which show who makes it."""
    job.samples([i * PERIOD + 45 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL))
    return job


@pytest.mark.parametrize(
    ("code", "job", "named"),
    [
        ("HST001", lambda: inlined(around(sampled(after=40 * MS)), "report"), f"own line {REPORT}"),
        ("HST001", in_step, "own line 22"),
        ("INP004", lambda: inlined(around(sampled(before=40 * MS)), "make_batch"), f"own line {MAKE}"),
        ("HST009", lambda: inlined(stalled(200 * MS), "report"), f"own line {REPORT}"),
        ("TRD001", lambda: inlined(rising(10 * MS, 90 * MS), "report"), f"own line {REPORT}"),
    ],
)
def test_the_loop_is_not_to_be_run_every_n_steps(code: str, job: object, named: str) -> None:
    """The title names the loop's own line, and no advice is to run the function that makes the steps less often."""
    assert callable(job)
    finding = found(job())
    assert finding.code == code
    assert named in finding.title
    said = " ".join(r.text for r in finding.remedies)
    assert [
        word for word in ("every N steps", "less often", "run main", "run run_step", "vectorise main") if word in said
    ] == []


@pytest.mark.parametrize("job", [sampled(after=40 * MS), stalled(200 * MS), rising(10 * MS, 90 * MS)])
def test_a_function_that_the_loop_calls_can_be_called_less_often(job: Job) -> None:
    """What the loop calls beside the step keeps that advice, by its name."""
    finding = found(job)
    assert "report" in finding.title
    assert any(r.id == "do-it-less-often" and "run report" in r.text for r in finding.remedies)


AGENT = "/tmp/run/arm/stepscope/agent"
WRAPPER = Frame(f"{AGENT}/probes/tensorflow/session.py", "_wrap.<locals>.run", 148, own=False)
TELLING = (
    WRAPPER,
    Frame(f"{AGENT}/core/state.py", "AgentState.thread", 284, own=False),
    Frame("/usr/lib/python3.11/json/__init__.py", "dumps", 231, own=False),
)


@pytest.mark.parametrize(
    ("below", "named"),
    [
        (TELLING, False),
        ((WRAPPER,), True),
        ((WRAPPER, Frame("/x/site-packages/onnxruntime/a.py", "run", 1, own=False)), True),
    ],
    ids=["measuring", "the-wrapper-of-c", "a-library"],
)
def test_what_measuring_takes_is_no_python_of_the_users(below: tuple[Frame, ...], *, named: bool) -> None:
    """After the call has ended, its line is still on the stack while we write: that line does not get the time."""
    job = train_loop(50 * MS)
    job.samples([i * PERIOD + 20 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL))
    job.samples([i * PERIOD + 80 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT), *below)
    findings, _, failures = run(ALL, job.view())
    assert failures == ()
    assert ("HST001" in [f.code for f in findings]) == named


def test_measuring_takes_its_part_of_the_time_from_nobody() -> None:
    """Half of the time between calls is ours: the user's function has the other half, not all of it."""
    job = train_loop(40 * MS)
    job.samples([i * PERIOD + 20 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL))
    job.samples([i * PERIOD + 60 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT), *TELLING)
    job.samples([i * PERIOD + 80 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT), Frame(SCRIPT, "report", 8))
    assert found(job).cost.ratio == pytest.approx(0.3, abs=0.02)


def test_at_most_the_calls_get_back_what_the_python_took_of_the_caches() -> None:
    """All samples are on the code, so that the interval of samples ends at its share: the rest is of the calls."""
    cost = found(inlined(around(sampled(after=40 * MS)), "report")).cost
    assert cost.ratio == pytest.approx(0.4, abs=0.01)
    assert cost.high == pytest.approx(0.4 + caches.freed(0.6), abs=0.02)
