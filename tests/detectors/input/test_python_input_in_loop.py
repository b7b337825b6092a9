"""INP004 python-input-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import HANDOVER, MAKE, PERIOD, STEPS, sampled, unsampled

from stepscope.detectors.input.python_input_in_loop import DETECTOR
from stepscope.model.session.session import HostInfo

FIXTURES = Fixtures(
    firing=lambda: sampled(before=50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 4), ("train.py", MAKE)),
        metrics=("other_python_ratio", "samples_on_input_code", "samples"),
        title=("prepares each batch in Python", "make_batch", "50 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tf-data",
    ),
    silent=lambda: sampled(after=50 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: sampled(before=10 * MS + HANDOVER - US),
    at=lambda: sampled(before=10 * MS + HANDOVER + US),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def passes(*, pull: bool) -> Job:
    """A loop over something that takes 20 ms of its own line between two passes, sampled there."""
    job = Job()
    lines = ["def main():", "    for i in range(9):", "        for batch in dataset:", "            train_step(batch)"]
    job.sources[SCRIPT] = "\n".join(lines) + "\n"
    job.function(call_file=SCRIPT, call_line=4, call_function="main").every(PERIOD, STEPS, dur=60 * MS, start=20 * MS)
    if pull:
        job.nexts().every(PERIOD, STEPS, dur=MS, arg=job.iterator(), start=19 * MS)
    job.samples([i * PERIOD + 10 * MS for i in range(STEPS)], Frame(SCRIPT, "main", 3))
    return job


def test_another_pass_over_a_dataset_is_no_python_of_the_loop() -> None:
    """The line that iterates over tf.data runs no Python of the user's; over anything else it may."""
    assert codes(passes(pull=True)) == []
    assert codes(passes(pull=False)) == ["INP004"]


INSIDE = """\
def score(wave):
    wave = resample(wave)
    return step(log_mel(wave))
def main():
    for number in range(9):
        wave = listen(number)
        seen = score(wave)
        tidy(seen)
"""


def called_by_a_helper(*, listen: int, resample: int, mel: int, tidy: int) -> Job:
    """The step is called in a function that the loop calls, 8 ms of 100; ms of what runs around it, with samples."""
    job = Job(host=HostInfo(cpus=2))
    job.sources[SCRIPT] = INSIDE
    job.function(call_file=SCRIPT, call_line=3, call_function="score").every(PERIOD, STEPS, dur=8 * MS, start=80 * MS)
    at = 0
    score = Frame(SCRIPT, "main", 7), Frame(SCRIPT, "score", 2)
    here = score[0], score[1]._replace(line=3)
    stacks = (
        (listen, (Frame(SCRIPT, "main", 6), Frame("/job/hall.py", "listen", 4))),
        (resample, (*score, Frame("/job/wave.py", "resample", 5))),
        (mel, (*here, Frame("/job/wave.py", "log_mel", 9))),
    )
    for share, frames in stacks:
        job.samples([i * PERIOD + (at + k) * MS for i in range(STEPS) for k in range(share)], *frames, dur=MS)
        at += share
    job.samples([i * PERIOD + 84 * MS for i in range(STEPS)], *here)
    after = Frame(SCRIPT, "main", 8), Frame("/job/hall.py", "tidy", 20)
    job.samples([i * PERIOD + (88 + k) * MS for i in range(STEPS) for k in range(tidy)], *after, dur=MS)
    return job


def test_what_a_function_around_the_step_prepares_is_input() -> None:
    """The statements before the call in its own function, and those of the loop that calls that function."""
    job = called_by_a_helper(listen=20, resample=40, mel=20, tidy=12)
    found = {one.code: one for one in find(job)}
    assert found.keys() == {"INP004", "HST001"}
    assert found["INP004"].cost.ratio == pytest.approx(0.4, abs=0.01)  # what is in resample
    assert found["INP004"].cost.high >= 0.8
    assert "50 % of it in resample" in found["INP004"].title
    assert found["HST001"].cost.ratio == pytest.approx(0.12, abs=0.01)
    assert found["HST001"].where[0].function == "tidy"


def test_batches_made_ahead_come_first_only_where_the_step_leaves_them_time() -> None:
    """Another process that takes as long saves no more than the step takes; less work does."""
    short, long = called_by_a_helper(listen=20, resample=40, mel=20, tidy=0), sampled(before=50 * MS)
    (little,), (much,) = (look(DETECTOR, job)[0] for job in (short, long))
    assert [one.id for one in little.remedies][:2] == ["vectorise", "use-tf-data"]
    assert little.cost.low == pytest.approx(0.08, abs=0.01)
    assert little.cost.ratio == pytest.approx(0.46, abs=0.01)  # what its costliest function takes
    assert little.cost.high >= 0.92
    assert much.remedies[0].id == "use-tf-data"
