"""Runs are made once: those in the folder count when an experiment is resumed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.use_cases.whatif.fake_job import RUN_S, Made, recorded

from stepscope.experiments import climb, plan, schedule
from stepscope.experiments.climb import Rules
from stepscope.experiments.schedule import Experiment, TimeLimits
from stepscope.model.report.whatif import WhatIfReport
from stepscope.tables.errors import TargetError
from stepscope.use_cases.whatif import progress, result, state, way
from stepscope.use_cases.whatif.recorded import RecordedRuns
from stepscope.use_cases.whatif.result import Stage

FACTORS = {"graph": 2.0, "xla-on": 1.2, "prefetch": 1.0}
LIMITS = TimeLimits(seconds=240.0, rounds=5)


def explore(runs: RecordedRuns) -> Experiment:
    """An experiment with four trials, one of which fails."""
    candidates = plan.named([*FACTORS, "parallel-map"])
    return schedule.explore(candidates, runs.measured, runs.clock, LIMITS)


@pytest.mark.parametrize("at", [2, 5, 7, 9, 13])
def test_an_interrupted_experiment_comes_to_what_it_would_have_come_to(tmp_path: Path, at: int) -> None:
    """Resumed, it repeats no run, and its answers, its order and its use of time are those of one that was not."""
    whole, all_made = recorded(_folder(tmp_path / "a"), FACTORS, fails=frozenset({"parallel-map"}))
    expected = explore(whole)
    folder, made = _folder(tmp_path / "b"), Made()
    first, _ = recorded(folder, FACTORS, made=made, fails=frozenset({"parallel-map"}), interrupted_at=at)
    try:
        assert explore(first).interrupted
    except KeyboardInterrupt:
        assert at <= 6, "one round is complete"
    second, _ = recorded(folder, FACTORS, made=made, fails=frozenset({"parallel-map"}))
    found = explore(second)
    assert made.changes == all_made.changes
    assert [arm.pairs for arm in found.arms] == [arm.pairs for arm in expected.arms]
    assert [arm.failures for arm in found.arms] == [arm.failures for arm in expected.arms]
    assert second.spent_s == pytest.approx(whole.spent_s, abs=0.5)
    assert found.not_tried == expected.not_tried
    assert len(second.runs) == len(whole.runs)


def test_a_resumed_run_says_nothing(tmp_path: Path) -> None:
    """Lines are those of runs that are made now."""
    folder, made = _folder(tmp_path / "a"), Made()
    runs, _ = recorded(folder, FACTORS, made=made)
    runs.measured("", 1)
    assert made.lines == ["round 1: unchanged 999 us a sample"]
    again, _ = recorded(folder, FACTORS, made=made)
    again.measured("", 1)
    assert again.runs[0].contacts == runs.runs[0].contacts is not None
    again.measured("graph", 1, stage="step2", kept=("prefetch",))
    assert made.lines[1:] == ["step2, round 1: graph 499 us a sample"]


SWITCHED = {"stub:slow": 4.0, "no-callbacks": 1.5, "no-summaries": 1.2, "prefetch": 1.1}
SILENT = {"no-callbacks": "too few steps"}


def explore_switched(runs: RecordedRuns) -> Experiment:
    return schedule.explore(plan.named([*SWITCHED]), runs.measured, runs.clock, LIMITS, runs.switched)


@pytest.mark.parametrize("at", [2, 3, 4, 5, 8])
def test_an_experiment_with_switched_trials_is_resumed(tmp_path: Path, at: int) -> None:
    """Switched runs count as such, and those of trials whose blocks said nothing are not made again."""
    whole, all_made = recorded(_folder(tmp_path / "a"), SWITCHED, silent=SILENT)
    expected = explore_switched(whole)
    folder, made = _folder(tmp_path / "b"), Made()
    first, _ = recorded(folder, SWITCHED, made=made, silent=SILENT, interrupted_at=at)
    with contextlib.suppress(KeyboardInterrupt):
        explore_switched(first)
    second, _ = recorded(folder, SWITCHED, made=made, silent=SILENT)
    found = explore_switched(second)
    assert made.changes == all_made.changes
    assert [(arm.switched, arm.whole_why) for arm in found.arms] == [
        (True, ""),
        (False, "too few steps"),
        (True, ""),
        (False, ""),
    ]
    assert [arm.pairs for arm in found.arms] == [arm.pairs for arm in expected.arms]


def test_how_a_trial_was_measured_is_reported(tmp_path: Path) -> None:
    """Pairs of blocks of one process, in the time of a sample; or why it was in effect in whole runs."""
    runs, made = recorded(_folder(tmp_path / "a"), SWITCHED, silent=SILENT)
    report = result.build(runs, [Stage(found=explore_switched(runs))])
    found = {one.remedy: one for one in report.results}
    stub, callbacks = found["stub:slow"], found["no-callbacks"]
    assert (stub.pairs, stub.rounds, stub.whole_why, stub.verdict) == (4, 1, "", "faster")
    assert stub.ns == pytest.approx(250_000, rel=0.01)
    assert stub.ratio == pytest.approx(0.25)
    assert stub.ns / stub.before_ns == pytest.approx(stub.ratio, rel=1e-4)
    live = {one.trial: one for one in progress.of(runs, 60.0).known}
    assert live["stub:slow"].ratio == pytest.approx(0.25)
    assert (callbacks.pairs, callbacks.whole_why) == (0, "too few steps")
    assert [run.remedy for run in report.runs if run.switched] == ["stub:slow", "no-callbacks", "no-summaries"]
    assert "round 1: stub:slow, switched on and off 250 us a sample with it, 1 ms without" in made.lines
    assert "round 1: no-callbacks, switched on and off not possible within one run: too few steps" in made.lines


def test_runs_to_their_own_end_are_not_switched(tmp_path: Path) -> None:
    """With ``--whole`` a run has no end at which blocks could be enough; and a gain that is fixed is never switched."""
    runs, made = recorded(_folder(tmp_path / "a"), SWITCHED)
    runs.measured("", 1)
    assert runs.switched("prefetch", 1) is None
    runs.runner = replace(runs.runner, seconds=0.0)
    assert runs.switched("stub:slow", 1) is None
    assert made.changes == [()]


def test_a_session_that_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    folder, made = _folder(tmp_path / "a"), Made()
    runs, _ = recorded(folder, FACTORS, made=made)
    runs.measured("", 1)
    made.reports.clear()
    again, _ = recorded(folder, FACTORS, made=made)
    again.measured("", 1)
    assert made.changes == [(), ()]
    assert again.spent_s == RUN_S


def test_the_unchanged_job_that_fails_is_no_run(tmp_path: Path) -> None:
    """It may be mended, and the experiment resumed."""
    folder = _folder(tmp_path / "a")
    runs, _ = recorded(folder, FACTORS, fails=frozenset({""}))
    with pytest.raises(TargetError):
        runs.measured("", 1)
    assert not (folder / state.NAME).exists()


def test_time_is_that_of_the_runs(tmp_path: Path) -> None:
    runs, _ = recorded(_folder(tmp_path / "a"), FACTORS)
    runs.measured("", 1)
    runs.look(12.0)
    assert runs.clock() == 2 * RUN_S


def _until_done(folder: Path, made: Made, *, interrupted_at: int = 1_000_000) -> WhatIfReport:
    runs, _ = recorded(folder, FACTORS, made=made, interrupted_at=interrupted_at)
    job = way.RecordedJob(runs, lambda _stage, _kept: plan.named([*FACTORS, "compute-only", "batch:4"]))
    return way.report(runs, climb.climb(job, runs.clock, Rules(seconds=1e9, rounds=5)), changed=False)


def test_until_done_is_reported_with_all_steps(tmp_path: Path) -> None:
    """Both gains are kept, in the order of their size; the total is measured; ceilings and changing gains are left."""
    report = _until_done(_folder(tmp_path / "a"), Made())
    assert report.way is not None
    assert [step.winner for step in report.way.steps] == ["graph", "xla-on", ""]
    assert [step.kept for step in report.way.steps] == [(), ("graph",), ("graph", "xla-on")]
    assert report.way.kept == ("graph", "xla-on")
    assert "jit_compile=True" in report.way.lasting[1]
    assert report.way.total is not None
    assert report.way.total.ratio == pytest.approx(1 / 2.4, rel=0.01)
    assert report.way.total.verdict == "faster"
    assert sorted(one.remedy for one in report.way.left) == ["batch:4", "compute-only"]
    assert report.ns == pytest.approx(1e6, rel=0.01)
    assert report.way.steps[1].ns == pytest.approx(5e5, rel=0.01)
    assert {one.remedy for one in report.results} == {"graph", "xla-on", "prefetch"}
    assert {run.kept for run in report.runs if run.stage == "final"} == {(), ("graph", "xla-on")}


def test_until_done_is_resumed_in_any_step(tmp_path: Path) -> None:
    """Interrupted in its second step, and again at its end, it makes each run once."""
    whole = Made()
    expected = _until_done(_folder(tmp_path / "a"), whole)
    folder, made = _folder(tmp_path / "b"), Made()
    for at in (15, len(whole.changes) - 12):
        interrupted = _until_done(folder, made, interrupted_at=at)
        assert interrupted.interrupted
        assert interrupted.way is not None
        assert interrupted.way.stop == "interrupted"
    found = _until_done(folder, made)
    assert made.changes == whole.changes
    assert found.way == expected.way


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
