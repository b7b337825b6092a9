"""The line of a loop that iterates: over tf.data it runs no Python of the user's, over anything else it may."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import PERIOD, STEPS

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL


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


def codes(job: Job) -> list[str]:
    """The codes of what is found."""
    return [f.code for f in run(ALL, job.view())[0]]


def test_another_pass_over_a_dataset_is_no_python_of_the_loop() -> None:
    """The line that iterates over tf.data runs no Python of the user's; over anything else it may."""
    assert codes(passes(pull=True)) == []
    assert codes(passes(pull=False)) == ["INP004"]
