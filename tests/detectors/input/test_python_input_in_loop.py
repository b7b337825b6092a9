"""INP004 python-input-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import HANDOVER, MAKE, PERIOD, STEPS, sampled, unsampled

from stepscope.detectors.input.python_input_in_loop import DETECTOR

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
