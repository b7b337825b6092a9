"""One step compared with the median step: what made it slow, where, and what cannot be said of it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job, S
from tests.detectors.jobs import PERIOD, keras_fit, nothing, train_loop

from stepscope.diagnosis import analyze
from stepscope.model.report.step_detail import StepDetail
from stepscope.report import step_text
from stepscope.report.sections import step_detail
from stepscope.tables.errors import UsageError
from stepscope.tables.records import CHILD, GROUP
from stepscope.wire.kinds import Flag, Kind

SLOW = 60
"""Number of the slow step."""
STEPS = 100
EXTRA = 300 * MS


def stretched(call: int = 20 * MS) -> Job:
    """A fit of which one step is longer by ``EXTRA`` at its end."""
    job = Job()
    job.loop("fit", line=50).at(0, STEPS * PERIOD + EXTRA)
    step = job.execution("train")
    for number in range(STEPS):
        step.at(begin(number), call, arg=1)
    return job


def begin(number: int) -> int:
    """Start of a step of ``stretched``."""
    return number * PERIOD + (EXTRA if number > SLOW else 0)


def slow(job: Job, which: str = "slowest") -> StepDetail:
    """The one step that is asked for."""
    (found,) = step_detail.of_session(job.view(), which)
    return found


def test_a_save_is_named_with_its_callback_and_line() -> None:
    """The sentence has the time, the factor, the component, the callback around the save, and the user's line."""
    job = stretched()
    at = begin(SLOW) + 30 * MS
    job.callback("ModelCheckpoint.on_epoch_end", own=False).at(at, EXTRA)
    job.save(line=88).at(at + MS, EXTRA - 2 * MS)
    found = slow(job)
    assert found.number == SLOW
    assert found.headline == (
        "step 60 took 400 ms, 4.0 times the median (100 ms): 298 ms of it saving "
        "(ModelCheckpoint.on_epoch_end, train.py:88)"
    )
    assert [(one.what, one.usual_steps_ratio) for one in found.happened] == [("callback", 0.0), ("save", 0.0)]


def test_parts_add_up_to_both_steps() -> None:
    """The components of the step and those of the median step each add up to its duration."""
    found = slow(stretched())
    assert sum(part.ns for part in found.parts) == found.dur_ns == PERIOD + EXTRA
    assert sum(part.median_ns for part in found.parts) == found.median_ns == PERIOD


def test_python_that_slept_is_named_by_its_samples() -> None:
    """Without any record the user's line comes from stack samples, and that the thread hardly ran is said."""
    job = train_loop(60 * MS)
    job.records = [r._replace(start_ns=r.start_ns + (EXTRA if r.start_ns > begin(SLOW) else 0)) for r in job.records]
    at = begin(SLOW) + 70 * MS
    job.samples(range(at, at + EXTRA, 50 * MS), Frame(SCRIPT, "main", 46), Frame(SCRIPT, "rotate_log", 7))
    job.samples([begin(10)], Frame(SCRIPT, "main", 46), flags=Flag.CPU)
    found = slow(job)
    assert "other Python" in found.headline
    assert "(rotate_log, train.py:7); its thread was on a CPU 0 % of the time" in found.headline
    assert (found.lines[0].where.line, found.samples) == (7, 6)


def test_a_sample_that_began_before_the_step_counts_from_its_start() -> None:
    """It stands for the time since the one before: 355 ms of it cannot lie in 50 ms of a step."""
    job = train_loop(60 * MS)
    job.records = [r._replace(start_ns=r.start_ns + (EXTRA if r.start_ns > begin(SLOW) else 0)) for r in job.records]
    job.samples([begin(SLOW) + 50 * MS], Frame(SCRIPT, "main", 46), dur=355 * MS)
    (line,) = slow(job).lines
    assert line.ns == 50 * MS


def test_samples_of_a_step_are_no_longer_than_the_step() -> None:
    """One stands for CPU time, one for waiting, each since the one of its kind before: together at most what passed."""
    job = train_loop(60 * MS)
    job.records = [r._replace(start_ns=r.start_ns + (EXTRA if r.start_ns > begin(SLOW) else 0)) for r in job.records]
    job.samples([begin(SLOW) + 25 * MS], Frame(SCRIPT, "main", 46), dur=25 * MS)
    job.samples([begin(SLOW) + 47 * MS], Frame(SCRIPT, "main", 47), dur=55 * MS)
    assert [line.ns for line in slow(job).lines] == [25 * MS, 22 * MS]


def test_a_retrace_says_what_changed() -> None:
    """The function, its line and the reason."""
    job = stretched()
    job.trace(begin(SLOW) + 30 * MS, EXTRA, cause="shape", argument="x", before="f32(8)", after="f32(7)", ordinal=2)
    assert "300 ms of it tracing (train_step, train.py:10: the shape of x changed (f32(8) → f32(7)))" in (
        slow(job).headline
    )


def test_a_stall_of_the_input_names_the_python_of_its_pipeline() -> None:
    """A wait for a batch: the element of the generator that took as long, on another thread, is its cause."""
    job = stretched()
    job.nexts().at(begin(SLOW) + 30 * MS, EXTRA)
    element = job.python("generator", "read_rows", line=15)
    for number in range(STEPS):
        element.at(begin(number) + 25 * MS, EXTRA if number == SLOW else MS, thread=POOL)
    found = slow(job)
    assert "of it input wait (read_rows, train.py:15)" in found.headline
    assert ("pipeline", MS) in [(one.what, one.usual_ns) for one in found.happened]


def test_what_every_step_does_did_not_happen() -> None:
    """A callback of each step that is as long as ever is not listed."""
    job = stretched()
    callback = job.callback("Progress.on_train_batch_end")
    for number in range(STEPS):
        callback.at(begin(number) + 30 * MS, 10 * MS)
    assert slow(job).happened == ()


@pytest.mark.parametrize(("seconds", "coarse"), [(30, True), (0, False)])
def test_readings_that_are_too_coarse_say_so(seconds: int, *, coarse: bool) -> None:
    """Samples once a second say what the machine did around a step of 400 ms, not in it; without samples, nothing."""
    job = stretched()
    if seconds:
        job.machine(seconds, others=1.5, waiting=0.7)
    lines = dict(step_text.rows(slow(job)))["machine"]
    assert any("too coarse" in line for line in lines) is coarse
    assert (lines == ["not sampled around this step"]) is not coarse


def test_a_busy_moment_of_others_is_marked() -> None:
    """CPU of others that is well above its mean over the run is raised, and who used it is named."""
    job = stretched()
    job.machine(12, others=0.1)
    busy = job.hosts.at_ns > 6 * S
    job.hosts.others_cpu_ns[busy] += 1_500 * MS
    job.rival("python backup.py", cores=1.5, seconds=12, child=GROUP)  # the same shell started it
    job.rival("python evaluate.py", cores=1.9, seconds=12, pid=901, child=CHILD, runnable=1)
    found = slow(job)
    assert next(one for one in found.machine if one.name == "others_cpu").raised
    assert found.rival == "python backup.py (1.5 cores)"


def test_an_update_ends_its_step() -> None:
    """From the fourth update of PyTorch to the fifth lasts the fifth step, number 4; before the first is no gap."""
    job = Job()
    job.framework("torch", "2.13.0")
    update = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=44)
    for number in range(40):
        update.at(number * 10 * MS + (50 * MS if number > 3 else 0), 0)
    view = job.view()
    (slowest,) = step_detail.of_session(view, "slowest")
    assert (slowest.number, slowest.dur_ns) == (4, 60 * MS)
    (first,) = step_detail.of_session(view, "0")
    assert first.notes[0].startswith("step 0 was not observed: no record says when it began")


def test_a_step_in_a_gap_was_not_observed() -> None:
    """Its number counts the steps that were only counted; the nearest observed step is shown and named."""
    job = keras_fit(20 * MS, steps=40)
    hidden = 200
    start = 40 * PERIOD
    job.gap(start, 10 * S, hidden)
    job.execution("train").every(PERIOD, 40, dur=20 * MS, start=start + 10 * S, arg=1)
    view = job.view()
    assert view.steps is not None
    (found,) = step_detail.of_session(view, "140")
    assert found.asked == "140"
    assert found.notes[0].startswith("step 140 was not observed")
    assert f"the nearest observed step is {found.number}" in found.notes[0]
    assert step_text.text([found]).startswith("step 140 was not observed")


@pytest.mark.parametrize("which", ["100", "-1", "x", "slowest:0", "slowest:99", "slowest:x", "9" * 30, ""])
def test_bad_numbers_get_one_line(which: str) -> None:
    """What is no step is refused with what is expected."""
    with pytest.raises(UsageError, match="expected"):
        step_detail.of_session(stretched().view(), which)


def test_no_steps_and_no_slow_ones_are_refused() -> None:
    """A job without steps, and one whose steps are all alike, have nothing to show."""
    with pytest.raises(UsageError, match="no steady steps"):
        step_detail.of_session(nothing().view(), "1")
    with pytest.raises(UsageError, match="no step is an outlier"):
        step_detail.of_session(train_loop(20 * MS).view(), "slowest")


def test_the_report_names_its_slow_steps_and_only_those() -> None:
    """One slow step: one entry in the report, one line in its text with the command; none without."""
    report = analyze.report_of(stretched().view().session)
    assert [one.number for one in report.slow_steps] == [SLOW]
    assert report.series["outlier_step"] == (float(SLOW),)
    alike = analyze.report_of(train_loop(20 * MS).view().session)
    assert alike.slow_steps == ()


def test_markdown_and_json_are_of_the_same_step() -> None:
    """Names from the session become no markup; one step is an object, several are a list."""
    job = stretched()
    job.callback("<b>|On|.on_epoch_end").at(begin(SLOW) + 30 * MS, EXTRA)
    found = slow(job)
    said = step_text.markdown([found])
    assert "\\<b\\>\\|On\\|.on\\_epoch\\_end" in said
    assert step_text.to_json([found]).startswith(b'{\n  "schema": "stepscope.step/1"')
    assert step_text.to_json([found, found]).startswith(b"[")
