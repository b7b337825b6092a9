"""GEN012 time-in-other-python: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive import torch_jobs
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import PERIOD, REPORT, STEPS, nothing, sampled, train_loop

from stepscope.derive.ledger import wrapped_calls
from stepscope.detectors.general.time_in_other_python import DETECTOR
from stepscope.model.log.events import AgentCost
from stepscope.wire.kinds import Flag, Kind


def clocked(waiting: int) -> Job:
    """A loop with 30 ms of Python after each call, of which the thread waits for a share, in percent."""
    job = train_loop(PERIOD - 30 * MS)
    for flags, dur in ((0, waiting), (int(Flag.CPU), 100 - waiting)):
        times = [i * PERIOD + PERIOD - 15 * MS for i in range(STEPS)]
        frames = (Frame(SCRIPT, "main", REPORT), Frame(SCRIPT, "report", 8))
        job.samples(times, *frames, dur=dur * MS // 5, flags=flags)
    return job


FIXTURES = Fixtures(
    firing=lambda: sampled(after=30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        basis="modelled",
        where=(("train.py", 8), ("train.py", 45)),
        metrics=("other_python_ratio", "part at train.py:8"),
        title=("Python between the steps takes 30 % of the step time", "in report"),
        exposed="prediction",
        pipeline_stage="output-processing",
        remedy="vectorise",
    ),
    silent=lambda: sampled(after=MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: sampled(after=4 * MS),
    at=lambda: sampled(after=6 * MS),
    edges={
        "min_waiting_ratio": Edge(below=lambda: clocked(69), at=lambda: clocked(70), shows="have-it-ready"),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def test_a_thread_that_waits_is_not_said_to_run_python() -> None:
    """Where the thread's CPU clock shows that it did not run, the title says that it waits."""
    titles = [look(DETECTOR, clocked(waiting))[0][0].title for waiting in (10, 95)]
    assert [title.startswith("the thread of the steps waits") for title in titles] == [False, True]


@pytest.mark.parametrize(("after", "severity"), [(19, "info"), (21, "medium")])
def test_one_function_with_a_fifth_of_the_steps_stands_above_information(after: int, severity: str) -> None:
    """Below a fifth, what a function that the loop calls takes is told and not claimed."""
    (found,), _ = look(DETECTOR, sampled(after=after * MS))
    assert found.severity == severity


def test_the_loop_itself_is_not_claimed() -> None:
    """Python of the function that makes the steps is information, whatever it takes."""
    job = train_loop(PERIOD - 30 * MS)
    for at in range(STEPS):
        job.samples([at * PERIOD + 10 * MS, at * PERIOD + PERIOD - 15 * MS], Frame(SCRIPT, "main", REPORT))
    (found,), _ = look(DETECTOR, job)
    assert (found.severity, found.cost.basis) == ("info", "unknown")


def test_the_lines_of_calls_that_are_not_measured_are_told_without_a_claim() -> None:
    """In a loop of JAX a line may be JAX's work: it is named, and nothing is said to be Python's or to be saved."""
    job = Job()
    job.framework("jax", "0.10.2")
    job.step().every(PERIOD, STEPS, dur=PERIOD)
    job.samples([i * PERIOD + 50 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT))
    (finding,), _ = look(DETECTOR, job)
    assert finding.title.startswith("calls of JAX and other Python take 100 % of the step time")
    assert (finding.where[0].line, finding.severity, finding.cost.basis) == (REPORT, "info", "unknown")
    assert [remedy.id for remedy in finding.remedies] == ["see-the-ops"]


def test_what_our_own_code_takes_is_no_python_of_the_job() -> None:
    """20 us between calls of 60 us, of which our code takes several after each call, are not a quarter of the time."""
    job = train_loop(60 * US, steps=5_000, period=80 * US)
    job.event(AgentCost(at=0, record_ns=600, wrapper_ns=400))
    (found,), _ = look(DETECTOR, job)
    steps = job.steps()
    ours = wrapped_calls.in_steps(steps.worker, steps.windows).ns[1] / steps.steady_count
    assert 3 * US < ours < 15 * US
    assert found.title.startswith(f"Python between the steps takes {100 * (20 * US - ours) / (80 * US):.0f} %")
    assert f"put down to the code of stepscope: {100 * ours / (20 * US):.0f} % of it" in found.explanation


def test_our_code_after_calls_within_others_is_not_between_the_steps() -> None:
    """Fifty layers that each step calls are in its call, and so is what our code takes after each of them."""
    job = train_loop(1_800 * US, steps=2_000, period=2_000 * US)
    job.event(AgentCost(at=0, record_ns=600, wrapper_ns=400))
    layers = job.call(Kind.MODEL_CALL, "layer")
    for number in range(50):
        layers.every(2_000 * US, 2_000, dur=5 * US, start=(number + 1) * 20 * US)
    (found,), _ = look(DETECTOR, job)
    assert found.title.startswith(("Python between the steps takes 9", "Python between the steps takes 10 %"))


def test_each_part_of_a_step_of_pytorch_is_named_with_its_line() -> None:
    """As information: the time is the host's, and what of it could be saved is not known."""
    job = torch_jobs.training()
    torch_jobs.sampled(job, 2 * MS, torch_jobs.LOOP, torch_jobs.MODULE)
    torch_jobs.sampled(job, 3 * MS, torch_jobs.LOOP)
    findings = look(DETECTOR, job)[0]
    begins = (
        "the forward pass takes 15 %",
        "the backward pass takes 40 %",
        "the optimizer takes 20 %",
        "calls of PyTorch",
    )
    for begin in begins:
        (found,) = [one for one in findings if one.title.startswith(begin)]
        assert (found.severity, found.cost.basis) == ("info", "unknown")
    assert len(findings) == len(begins)
    (forward,) = [one for one in findings if "forward" in one.title]
    assert [(place.file, place.line) for place in forward.where] == [("train.py", 12)]
