"""Two calls that repeat alike: whichever the report of a run takes for its steps, runs are compared by the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, Job
from tests.use_cases.whatif.fake_job import recorded
from tests.web.recorded import write

from stepscope.diagnosis import analyze
from stepscope.model.report.step_summary import Throughput
from stepscope.use_cases.whatif import same_steps
from stepscope.use_cases.whatif.runs import TrialRun

if TYPE_CHECKING:
    from pathlib import Path

STEPS, PERIOD = 200, 40 * MS
NAMES = ("maker_step", "critic_step")


def adversaries(ahead: str, *, period: int = PERIOD, other: str = "") -> Job:
    """Two tf.functions, called in turn. ``ahead``: the one that came first; between threads chance decides."""
    job = Job(ended_ns=STEPS * period)
    names = [ahead, other or next(name for name in NAMES if name != ahead)]
    for number, text in enumerate(names):
        job.function(text, line=10 + 20 * NAMES.index(text) if text in NAMES else 90).every(
            period, STEPS, dur=12 * MS, start=number * 15 * MS
        )
    return job


def ran(job: Job, folder: Path, name: str, trial: str = "") -> TrialRun:
    """A run whose session lies in the folder."""
    write(job.session(), folder / f"{name}.stepscope")
    report = analyze.report_of_view(job.view())
    return TrialRun(round=1, trial=trial, session=f"{name}.stepscope", report=report, wall_s=1.0)


def test_the_unchanged_job_is_compared_with_itself(tmp_path: Path) -> None:
    """Its second run is read by the steps of its first."""
    first, second = (ran(adversaries(ahead), tmp_path, ahead) for ahead in ("maker_step", "critic_step"))
    assert (first.steps, second.steps) == ("tf.function maker_step", "tf.function critic_step")
    read = same_steps.read(second, first, tmp_path)
    measured = read.measured("step", first)
    assert measured.why == ""
    assert measured.ns == pytest.approx(PERIOD, rel=0.01)
    assert read.ns("step") == measured.ns


def test_a_gain_is_seen_by_either(tmp_path: Path) -> None:
    """A trial that takes a quarter off the loop, whichever call its report takes."""
    unchanged = ran(adversaries("maker_step"), tmp_path, "before")
    trial = ran(adversaries("critic_step", period=30 * MS), tmp_path, "after", "gc-off")
    measured = same_steps.read(trial, unchanged, tmp_path).measured("step", unchanged)
    assert measured.ns / unchanged.ns("step") == pytest.approx(0.75, rel=0.01)


def test_other_steps_are_refused_as_before(tmp_path: Path) -> None:
    """Where the calls are gone or have another name, or the session cannot be read, nothing is compared."""
    unchanged = ran(adversaries("maker_step"), tmp_path, "before")
    renamed = ran(adversaries("critic_step", other="renamed_step"), tmp_path, "after", "gc-off")
    for trial in (renamed, replace(renamed, session="gone.stepscope")):
        read = same_steps.read(trial, unchanged, tmp_path)
        assert read.alike is None
        assert "those of the unchanged job tf.function maker_step" in read.measured("step", unchanged).why


def test_a_call_that_is_rare_is_no_step(tmp_path: Path) -> None:
    """Calls that are over after a third of the run do not tie with its steps."""
    job = adversaries("maker_step")
    job.function("warm_up", line=70).every(PERIOD, STEPS // 3, dur=MS, start=35 * MS)
    write(job.session(), tmp_path / "one.stepscope")
    assert same_steps.throughput(tmp_path / "one.stepscope", "tf.function warm_up") is None
    assert same_steps.throughput(tmp_path / "one.stepscope", "tf.function critic_step") is not None


def test_runs_of_an_experiment_are_read_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round is read by the steps of the first run."""
    rate = Throughput(samples_per_s=500.0, steps_per_s=5.0)
    asked: list[str] = []

    def throughput(_: Path, title: str) -> Throughput:
        asked.append(title)
        return rate

    monkeypatch.setattr(same_steps, "throughput", throughput)
    experiment, _ = recorded(tmp_path, {})
    experiment.measured("", 1)
    report = experiment.runs[0].report
    assert report.session.step_times is not None
    times = msgspec.structs.replace(report.session.step_times, source="tf.function maker_step")
    session = msgspec.structs.replace(report.session, step_times=times)
    experiment.runs[0] = replace(experiment.runs[0], report=msgspec.structs.replace(report, session=session))
    assert experiment.measured("", 2).ns == 2e6
    assert asked == ["tf.function maker_step"]
