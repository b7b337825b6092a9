"""Which of several calls that repeat is the step."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Call, Job
from tests.detectors.fit_jobs import on_batch

from stepscope.derive.steps.step_candidates import UPDATES
from stepscope.wire.kinds import Kind


def test_a_long_validation_does_not_make_batches_the_steps() -> None:
    """A custom loop that validates on many batches after each epoch has its training function as step."""
    job = Job()
    train, test, nexts = job.function("train_step", line=10), job.function("test_step", line=20), job.nexts()
    at = 0
    for _ in range(3):
        for function, count, period in ((train, 200, 100 * MS), (test, 100, 60 * MS)):
            for _ in range(count):
                nexts.at(at, 5 * MS)
                function.at(at + 6 * MS, period // 2)
                at += period
    assert job.steps().title == "tf.function train_step"


def test_evaluations_between_fits_are_not_the_steps() -> None:
    """A program that evaluates longer than it fits has its training as step, also where a last fit has no records."""
    job = Job()
    fit, train, evaluate, test = job.loop(), job.execution(), job.loop("evaluate", line=60), job.execution("test")
    for turn in range(4):
        at = turn * 1000 * MS
        fit.at(at, 300 * MS)
        if turn < 3:
            train.every(3 * MS, 100, dur=2 * MS, start=at)
        evaluate.at(at + 310 * MS, 500 * MS)
        test.every(2 * MS, 250, dur=2 * MS, start=at + 310 * MS)
    found = job.steps()
    assert found.call is not None
    assert found.call.role == "train"
    assert "training-before-prediction" in [left.rule for left in found.why]


def test_evaluations_are_the_steps_where_training_hardly_takes_time() -> None:
    """A program that mostly evaluates has its evaluation as step."""
    job = Job()
    fit, train, evaluate, test = job.loop(), job.execution(), job.loop("evaluate", line=60), job.execution("test")
    for turn in range(4):
        at = turn * 1000 * MS
        fit.at(at, 40 * MS)
        train.every(2 * MS, 20, dur=1 * MS, start=at)
        evaluate.at(at + 50 * MS, 900 * MS)
        test.every(2 * MS, 450, dur=2 * MS, start=at + 50 * MS)
    found = job.steps()
    assert found.call is not None
    assert found.call.role == "test"


def test_samples_of_train_on_batch() -> None:
    """The samples that a train_on_batch call knows are the step's."""
    assert set(on_batch(2 * MS, 90 * MS).steps().samples.tolist()) == {32}


def _epochs(job: Job, *, between: int) -> None:
    """Six epochs of so many training steps, a call of another function after each."""
    train, other = job.function("train_step", line=10, role=UPDATES), job.function("squared_error", line=20)
    at = 0
    for _ in range(6):
        for _ in range(between):
            train.at(at, 4 * MS)
            at += 5 * MS
        other.at(at, 5 * MS)
        at += 400 * MS


def test_a_call_of_each_epoch_is_no_step() -> None:
    """A function called once after many training steps is not the step, whatever time lies between its calls."""
    job = Job()
    _epochs(job, between=20)
    found = job.steps()
    assert found.title == "tf.function train_step"
    assert "not-around-training" in [left.rule for left in found.why]


def test_a_call_of_each_training_step_may_be_the_step() -> None:
    """A call that comes as often as the training steps is not left out as one around them."""
    job = Job()
    _epochs(job, between=1)
    assert "not-around-training" not in [left.rule for left in job.steps().why]


def _read(job: Job, *, line: int) -> Call:
    """Values that are read at a line."""
    return job.call(Kind.SYNC, "numpy", call_file=SCRIPT, call_line=line)


def test_a_value_read_each_turn_makes_the_step_where_nothing_else_repeats() -> None:
    """An eager service whose only records are the answers that it reads has as many steps as answers."""
    job = Job()
    _read(job, line=7).every(20 * MS, 300, dur=5_000)
    found = job.steps()
    assert (found.title, found.count) == ("read of a value", 300)


def test_values_read_one_by_one_in_each_turn_are_no_steps() -> None:
    """Of two lines that read, the one that reads ten values in a row belongs to the turns of the other."""
    job = Job()
    many, one = _read(job, line=5), _read(job, line=9)
    for turn in range(60):
        many.every(200_000, 10, dur=5_000, start=turn * 50 * MS)
        one.at(turn * 50 * MS + 40 * MS, 5_000)
    found = job.steps()
    assert found.call is not None
    assert (found.call.call_line, found.count) == (9, 60)


def test_tokens_are_the_steps_of_a_decoder() -> None:
    """Where a prompt's tokens are read at an even pace, a step is a token, though each prompt ends with a read, too."""
    job = Job()
    token, prompt = _read(job, line=5), _read(job, line=9)
    for number in range(20):
        token.every(6 * MS, 40, dur=5_000, start=number * 250 * MS)
        prompt.at(number * 250 * MS + 245 * MS, 5_000)
    found = job.steps()
    assert found.call is not None
    assert (found.call.call_line, found.count) == (5, 800)


def test_values_read_beside_calls_are_no_steps() -> None:
    """A loop that reads its loss three times a step has its function's calls as steps."""
    job = Job()
    job.function("train_step", line=10, role=UPDATES).every(20 * MS, 100, dur=9 * MS)
    _read(job, line=30).every(7 * MS, 280, dur=30_000)
    found = job.steps()
    assert (found.title, found.count) == ("tf.function train_step", 100)
    assert "calls-before-marks" in [left.rule for left in found.why]


@pytest.mark.parametrize(("kind", "title"), [(Kind.APPLY, "optimizer update"), (Kind.GRADIENT, "gradient of a tape")])
def test_a_step_that_trains_two_models_is_one_step(kind: Kind, title: str) -> None:
    """Two updates of an eager step, at two lines, are not taken for two steps."""
    job = Job()
    for line in (12, 17):
        call = job.call(kind, title, call_file=SCRIPT, call_line=line)
        call.every(40 * MS, 100, dur=2 * MS, start=line * MS)
    found = job.steps()
    assert (found.title, found.count) == (title, 100)


def test_a_busy_machine_makes_no_bursts() -> None:
    """Iterations that are held up now and then stay the steps, though most of the time lies in these pauses."""
    job = Job()
    iteration, solved = _read(job, line=5), _read(job, line=9)
    at = 0
    for number in range(400):
        iteration.at(at, 5_000)
        if number % 40 == 39:
            solved.at(at + MS, 5_000)
        at += 60 * MS if number % 10 == 5 else 2 * MS
    found = job.steps()
    assert found.call is not None
    assert (found.call.call_line, found.count) == (5, 400)


def test_a_long_first_trace_does_not_make_pulls_the_steps() -> None:
    """In a short run whose first calls trace for longer than all others take, the calls are the steps all the same."""
    job = Job()
    nexts, train = job.nexts(), job.function("train_step", line=10)
    at = 0
    for number in range(41):
        nexts.at(at, MS)
        train.at(at + 2 * MS, 10 * MS)
        at += {0: 22_000 * MS, 1: 2_300 * MS}.get(number, 16 * MS)
    nexts.at(at, MS)
    assert job.steps().title == "tf.function train_step"


def test_the_first_trace_of_an_evaluation_does_not_make_it_the_step() -> None:
    """After one short epoch, an evaluation whose first call traces is no longer than the training."""
    job = Job()
    train, test = job.function("train_step", line=10, role=UPDATES), job.function("test_step", line=20)
    train.every(39 * MS, 64, dur=30 * MS)
    test.at(2_600 * MS, 800 * MS)
    test.every(32 * MS, 63, dur=28 * MS, start=3_460 * MS)
    assert job.steps().title == "tf.function train_step"


def test_batches_that_are_read_are_steps_by_their_pull() -> None:
    """A loop that only pulls batches and reads them has its batches as steps."""
    job = Job()
    job.nexts().every(100 * MS, 80, dur=90 * MS)
    _read(job, line=7).every(100 * MS, 80, dur=40_000, start=95 * MS)
    assert job.steps().title == "batch"


def test_runs_of_other_fetches_in_each_turn_are_steps_by_their_line() -> None:
    """A session that never fetches the same twice has a name for each run; its steps are the runs of a line."""
    job = Job()
    for i in range(20):
        job.call(Kind.SESSION_RUN, f"head_{i}", call_file="/job/train.py", call_line=9).at(i * 100 * MS, 80 * MS)
        if i % 7 == 0:
            job.call(Kind.SESSION_RUN, f"probe_{i}", call_file="/job/train.py", call_line=12).at(
                i * 100 * MS + 85 * MS, MS
            )
    found = job.steps()
    assert (len(found), found.call.call_line if found.call else 0) == (20, 9)


def test_runs_in_a_callback_are_the_steps_where_no_others_are_recorded() -> None:
    """Keras' graph mode runs its own steps past Session.run: what is recorded is what a callback runs."""
    job = Job()
    job.loop().at(0, 10_000 * MS)
    hook = job.callback("Scores.on_epoch_end")
    score = job.call(Kind.SESSION_RUN, "other fetches", call_file=SCRIPT, call_line=32, call_function="on_epoch_end")
    for epoch in range(5):
        hook.at(epoch * 2_000 * MS, 1_800 * MS)
        score.every(40 * MS, 40, dur=30 * MS, start=epoch * 2_000 * MS + MS)
    found = job.steps()
    assert found.call is not None
    assert (found.kind, found.call.call_line, len(found)) == (Kind.SESSION_RUN, 32, 200)


def test_runs_of_a_session_hook_are_not_the_steps_when_hooks_are_no_longer_recorded() -> None:
    """Estimator's CheckpointSaverHook reads the global step after each run; hooks are detached while a job runs."""
    job = Job()
    read = job.call(Kind.SESSION_RUN, "global_step/add:0", call_file=SCRIPT, call_line=72)
    train = job.call(Kind.SESSION_RUN, "Adam, loss", call_file=SCRIPT, call_line=72)
    hook = job.callback("CheckpointSaverHook.after_run")
    for step in range(200):
        train.at(step * 20 * MS, 15 * MS)
        if step < 10:
            hook.at(step * 20 * MS + 16 * MS, 2 * MS)
        read.at(step * 20 * MS + 17 * MS, MS // 2)
    found = job.steps()
    assert found.call is not None
    assert (found.call.text, len(found)) == ("Adam, loss", 200)
