"""HST004 slow-callback: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job, S
from tests.detectors.asking import codes, find
from tests.detectors.fit_jobs import read_models
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import CALL, PERIOD, STEPS, called_back, hooked, keras_fit, nothing
from tests.detectors.wait_jobs import look, looked

from stepscope.derive.ledger import pauses
from stepscope.detectors.host.slow_callback import DETECTOR
from stepscope.diagnosis.analyze import report_of
from stepscope.wire.kinds import Flag, Kind

FIXTURES = Fixtures(
    firing=lambda: called_back(30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", 30),),
        metrics=("callback_ratio", "callback_ns_per_call", "calls"),
        title=("callback Plotter", "30 ms on every batch", "on_train_batch_end", "30 %"),
        pipeline_stage="output-processing",
        remedy="callback-less-often",
    ),
    silent=lambda: called_back(MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: called_back(5 * MS - US),
    at=lambda: called_back(5 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_slow_hook_of_a_session_is_found_at_its_line() -> None:
    """The step is the user's run, not the one that the hook makes; the hook is named with its method's line."""
    view = hooked(40 * MS).view()
    assert view.steps is not None
    assert view.steps.call is not None
    assert view.steps.call.text == "train"
    (found,) = find(hooked(40 * MS))
    assert (found.code, found.where[0].line, found.where[0].function) == ("HST004", 30, "Slow.after_run")
    assert "the hook Slow takes 40 ms on every run" in found.title
    assert "N-th run" in found.remedies[0].text
    assert codes(hooked(MS)) == []


def test_callbacks_that_inherit_one_method_are_one_finding() -> None:
    """Four classes of a user's inherit a hook from one base: one root, with all of its cost, and their own names."""
    job = keras_fit(40 * MS)
    for i, text in enumerate(("Norms", "Dead", "Trend", "Memory")):
        callback = job.callback(f"{text}.on_train_batch_end")
        callback.every(PERIOD, STEPS, dur=10 * MS, start=(40 + 10 * i) * MS)
    (found,) = find(job)
    assert found.code == "HST004"
    assert found.cost.ratio == pytest.approx(0.4)
    assert (
        "4 callbacks that inherit the same on_train_batch_end (Norms, Dead, Trend and 1 more) take 40 ms" in found.title
    )
    assert {p.line for p in found.where} == {30}


def test_slow_callbacks_of_their_own_are_findings_of_their_own() -> None:
    """Two methods at two lines are two roots."""
    job = keras_fit(40 * MS)
    job.callback("One.on_train_batch_end", line=30).every(PERIOD, STEPS, dur=30 * MS, start=40 * MS)
    job.callback("Other.on_train_batch_end", line=60).every(PERIOD, STEPS, dur=20 * MS, start=70 * MS)
    assert [round(f.cost.ratio, 1) for f in find(job)] == [0.3, 0.2]


def test_a_slow_hook_of_the_library_is_named_where_the_user_calls() -> None:
    """Nobody edits the library: the line is the user's, the remedy is to ask less of the hook."""
    (found,) = find(hooked(40 * MS, own=False))
    assert (found.where[0].file, found.where[0].line) == ("train.py", CALL)
    assert "longer interval" in found.remedies[0].text


def test_a_slow_callback_is_not_an_input_problem() -> None:
    """Time that a callback takes between two batches is a gap of the consumer, not a wait for input."""
    assert codes(read_models(called_back(40 * MS), wait=US)) == ["HST004"]


def test_many_small_callbacks_are_one_finding() -> None:
    """Callbacks that are cheap alone and dear together are named together, the dearest first."""
    job = keras_fit(50 * MS)
    for i in range(6):
        callback = job.callback(f"Meter{i}.on_train_batch_end", line=100 + 10 * i)
        callback.every(PERIOD, STEPS, dur=(2 * MS if i == 3 else MS), start=50 * MS + 3 * i * MS)
    (found,) = find(read_models(job, wait=US))
    assert found.code == "HST004"
    assert found.cost.ratio == pytest.approx(0.07, abs=0.001)
    assert found.where[0].line == 130
    assert len(found.where) == 6


def test_a_callback_of_keras_itself_is_placed_at_fit() -> None:
    """For a callback outside of the user's code the place is the call of fit."""
    (found,) = find(read_models(called_back(30 * MS, own=False), wait=US))
    assert [(p.file, p.line) for p in found.where] == [("train.py", 50)]


def test_a_slow_first_call_does_not_hide_a_callback() -> None:
    """A callback whose first call (an import) takes longer than a fit is slow all the same."""
    job = Job()
    fit, execution = job.loop("fit"), job.execution("train")
    callback = job.callback("Plot.on_epoch_end")
    fit.at(0, 3 * S)
    callback.at(50 * MS, 2 * S)
    execution.at(0, 40 * MS, arg=1)
    for i in range(STEPS):
        at = 3 * S + i * PERIOD
        fit.at(at, 95 * MS)
        execution.at(at, 40 * MS, arg=1)
        callback.at(at + 45 * MS, 40 * MS)
    assert "HST004" in [f.code for f in find(job)]


@pytest.mark.parametrize(("reason", "told"), [("fsync", ["GEN014"]), ("running", ["HST004"])])
def test_a_callback_that_waits_for_a_file_is_told_as_that(reason: str, told: list[str]) -> None:
    """Where looks find what a slow callback waits for, the wait is the finding; else the callback is."""
    job = called_back(30 * MS)
    found = look(job, reason, *(("file", "/data/log.bin") if reason == "fsync" else ()))
    fit = Frame("/usr/lib/site-packages/keras/src/trainer.py", "fit", 9, own=False)
    stack = (Frame(SCRIPT, "main", 50), fit, Frame(SCRIPT, "Plotter.on_train_batch_end", 31))
    looked(job, found, [i * PERIOD + 65 * MS for i in range(STEPS)], *stack, dur=30 * MS)
    job.samples([i * PERIOD + 25 * MS for i in range(STEPS)], *stack[:2], dur=70 * MS, flags=int(Flag.CPU))
    codes_seen = [found.code for found in report_of(job.session()).findings]
    assert [code for code in codes_seen if code in {"GEN004", "GEN014", "HST004"}] == told


@pytest.mark.parametrize(
    ("outliers", "told"),
    [
        ({}, "takes 5 ms on every batch"),
        ({50: S}, "takes 1 s in one of 98 calls of on_train_batch_end"),
        ({20: 4_000 * MS, 80: 6_000 * MS}, "takes 5 s in 2 of 98 calls of on_train_batch_end"),
    ],
)
def test_what_happened_once_is_no_time_of_every_batch(outliers: dict[int, int], told: str) -> None:
    """A profiler that stops, say, between calls that take next to nothing; and nothing is to be done less often."""
    job = Job()
    run, hooks = job.execution("train"), job.call(Kind.HOOK, "on_train_batch_end")
    callback, at = job.callback("Board.on_train_batch_end"), 0
    for i in range(100):
        dur = outliers.get(i, MS if outliers else 5 * MS)
        run.at(at, 50 * MS, arg=1)
        hooks.at(at + 50 * MS, dur + MS)
        callback.at(at + 50 * MS, dur)
        at += 52 * MS + dur
    found = next(one for one in find(job) if one.code == "HST004")
    assert told in found.title
    ids = [one.id for one in found.remedies]
    assert ("callback-less-often" in ids) == (len(outliers) != 1)
    assert ("look-at-that-step" in ids) == (len(outliers) == 1)
    assert ("less often than it does now" in found.remedies[0].text) == (len(outliers) > 1)


@pytest.mark.parametrize(("every", "said"), [(5, "every 5 batches"), (10, "every 10 batches"), (2, "every 2 batches")])
def test_work_in_some_calls_has_its_distance(every: int, said: str) -> None:
    """A mean over all calls describes none, and "every N batches" is no advice for what does it already."""
    job = keras_fit(20 * MS)
    callback = job.callback("Plotter.on_train_batch_end")
    for number in range(STEPS):
        callback.at(number * PERIOD + 30 * MS, 60 * MS if number % every == 0 else US)
    (found,) = find(job)
    assert found.code == "HST004"
    assert f"the callback Plotter takes 60 ms {said} (on_train_batch_end)" in found.title
    assert "less often than it does now" in found.remedies[0].text


def test_like_work_in_each_call_stays_each_batch() -> None:
    """Noise between calls makes no distance."""
    job = keras_fit(20 * MS)
    callback = job.callback("Plotter.on_train_batch_end")
    for number in range(STEPS):
        callback.at(number * PERIOD + 30 * MS, (20 + 13 * number % 30) * MS)
    (found,) = find(job)
    assert "on every batch" in found.title


def in_windows(*, counted: int) -> Job:
    """A fit of 10 windows of 25 steps, and as many counted after each; its callback takes 40 ms in each tenth call."""
    job = Job()
    run, hooks, at, number = job.execution("train"), job.call(Kind.HOOK, "on_train_batch_end"), 0, 0
    callback = job.callback("Plotter.on_train_batch_end")
    for _ in range(10):
        for _ in range(25):
            dur = 40 * MS if number % 10 == 3 else 10 * US
            run.at(at, 15 * MS, arg=1)
            hooks.at(at + 15 * MS, dur + 10 * US)
            callback.at(at + 15 * MS, dur)
            at, number = at + 16 * MS + dur, number + 1
        if counted:
            job.gap(at - 2 * MS, 20 * counted * MS, counted)
            at, number = at + 20 * counted * MS, number + counted
    run.at(at, 15 * MS, arg=1)
    job.loop("fit", line=50).at(0, at + 16 * MS)
    job.ended_ns = at + 16 * MS
    return job


@pytest.mark.parametrize(("counted", "least"), [(0, 0.0), (100, 0.08)])
def test_few_long_calls_of_many_make_a_wide_interval(counted: int, least: float) -> None:
    """25 of the timed calls take all of the time: of 1,250 steps it could be a third more; of the timed it is exact."""
    found = next(one for one in find(in_windows(counted=counted)) if one.code == "HST004")
    assert found.cost.ratio == pytest.approx(0.2, abs=0.02)
    reach = found.cost.high - found.cost.ratio
    assert least / 2 <= found.cost.ratio - found.cost.low
    assert least <= 2 * reach
    assert (reach < 0.02) == (counted == 0)


def test_what_a_turn_takes_goes_with_the_share_and_the_distance() -> None:
    """Where steps were only counted: a fifth of steps of 20 ms, in each tenth, are 40 ms, whatever the timed took."""
    job = in_windows(counted=100)
    found = next(one for one in find(job) if one.code == "HST004")
    said = float(found.title.partition(" takes ")[2].partition(" ms every 10 batches")[0])
    assert said == pytest.approx(10 * found.cost.ratio * pauses.mean_ns(job.steps()) / MS, rel=0.01)
