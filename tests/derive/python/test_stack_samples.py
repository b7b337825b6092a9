"""Stack samples: whose line it is, which statement of the loop pays for it, and how sure a share is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import MS, POOL, SCRIPT, US, Frame, Job

from stepscope.derive.numeric import proportion
from stepscope.derive.python import stack_samples
from stepscope.wire.kinds import Flag

PERIOD = 100 * MS
MAIN = Frame(SCRIPT, "main", 43)
SLOW = Frame("/job/metrics.py", "confusion", 8)
NUMPY = Frame("/usr/lib/python3/site-packages/numpy/lib.py", "unique", 100, own=False)
TENSORFLOW = Frame("/usr/lib/python3/site-packages/tensorflow/python/ops/math_ops.py", "matmul", 1, own=False)
GEN = Frame("/usr/lib/python3/site-packages/tensorflow/python/ops/gen_math_ops.py", "mat_mul", 1, own=False)
AUTOGRAPH = Frame(
    "/usr/lib/python3/site-packages/tensorflow/python/autograph/impl/api.py", "_call_unconverted", 460, own=False
)
KERAS = Frame("/usr/lib/python3/site-packages/keras/src/trainer.py", "fit", 5, own=False)


def looped() -> Job:
    """Explicit steps, the function's call 50 ms at their beginning, Python after it."""
    job = Job()
    job.function(call_file=SCRIPT, call_line=43, call_function="main").every(PERIOD, 50, dur=50 * MS)
    return job


def times(count: int, at: int) -> list[int]:
    """So many moments, one a step."""
    return [(i + 1) * PERIOD + at for i in range(count)]


def test_a_sample_is_the_users_innermost_line() -> None:
    """The culprit is the innermost frame of the user's code, whatever library it is in."""
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, SLOW, NUMPY)
    (spot,) = job.view().hot_spots("other-python")
    assert (spot.culprit.file, spot.culprit.function, spot.culprit.line) == ("/job/metrics.py", "confusion", 8)
    assert spot.statement is not None
    assert (spot.statement.function, spot.statement.line) == ("main", 43)
    assert (spot.samples, spot.ratio, spot.called, spot.tensorflow_ratio) == (10, 1, "unique", 0)


def test_what_autograph_calls_is_the_users_line() -> None:
    """A converted function calls all by way of TensorFlow's code, C functions too; what that calls is kept."""
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, SLOW, AUTOGRAPH)
    (spot,) = job.view().hot_spots("other-python")
    assert (spot.culprit.function, spot.called, spot.tensorflow_ratio) == ("confusion", "", 0)
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, SLOW, AUTOGRAPH, TENSORFLOW)
    (spot,) = job.view().hot_spots("other-python")
    assert (spot.culprit.function, spot.called, spot.tensorflow_ratio) == ("confusion", "matmul", 1)


def test_samples_go_to_the_component_of_their_moment() -> None:
    """A sample inside of the call is the call's, one after it other Python's."""
    job = looped()
    job.samples(times(10, 20 * MS), MAIN, TENSORFLOW)
    job.samples(times(30, 70 * MS), MAIN, SLOW)
    view = job.view()
    assert [s.samples for s in view.hot_spots("call")] == [10]
    assert [s.samples for s in view.hot_spots("other-python")] == [30]
    assert [s.ratio for s in view.hot_spots("call", "other-python")] == [0.75, 0.25]


def test_spots_are_told_apart_by_statement() -> None:
    """The same function reached from two statements of the loop is two spots; its lines are listed by frequency."""
    job = looped()
    job.samples(times(5, 60 * MS), MAIN._replace(line=44), SLOW._replace(line=9))
    job.samples(times(20, 70 * MS), MAIN._replace(line=45), SLOW._replace(line=8))
    job.samples(times(10, 80 * MS), MAIN._replace(line=45), SLOW._replace(line=11))
    first, second = job.view().hot_spots("other-python")
    assert (first.samples, first.lines, first.statement and first.statement.line) == (30, (8, 11), 45)
    assert (second.samples, second.lines, second.statement and second.statement.line) == (5, (9,), 44)


def test_time_inside_of_tensorflow_is_told() -> None:
    """Samples whose user line is inside of TensorFlow or Keras, and those that run an op."""
    job = looped()
    job.samples(times(10, 60 * MS), MAIN, TENSORFLOW)
    job.samples(times(10, 70 * MS), MAIN, TENSORFLOW, GEN)
    job.samples(times(20, 80 * MS), KERAS, MAIN, NUMPY)
    taken = job.view().samples
    assert sum(s.in_tensorflow for s in taken) == 20
    assert sum(s.in_op for s in taken) == 10


def test_other_threads_and_warm_up_are_left_out() -> None:
    """Only the thread of the steps, only in the steady steps."""
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, thread=POOL)
    job.samples([MS, 49 * PERIOD + 60 * MS], MAIN)
    assert job.view().samples == ()


def test_a_stack_of_unknown_code_is_no_reason_to_fail() -> None:
    """Code lines that were lost leave a frame without a name, that is nobody's."""
    job = looped()
    job.samples(times(3, 70 * MS), Frame("x", "lost", 1))
    job.events[:] = [e for e in job.events if type(e).__name__ != "Code"]
    (first, *_) = job.view().samples
    assert (first.culprit, first.leaf.function) == (None, "?")
    assert job.view().hot_spots("other-python") == ()


def test_the_loop_is_the_callers_function() -> None:
    """Where the call of the step knows its caller, that is the loop."""
    assert looped().view().loop == (SCRIPT, "main")


def test_the_loop_is_the_deepest_function_in_common() -> None:
    """Else it is the deepest function of the user's that most samples share."""
    job = Job()
    job.step().every(PERIOD, 50, dur=0)
    run = Frame(SCRIPT, "run", 90)
    job.samples(times(20, 70 * MS), run, MAIN, SLOW)
    job.samples(times(20, 80 * MS), run, MAIN._replace(line=44))
    assert job.view().loop == (SCRIPT, "main")


def test_no_samples_no_loop() -> None:
    """Without samples and caller the loop is unknown, and so is the role of any line."""
    job = Job()
    job.step().every(PERIOD, 50, dur=US)
    assert job.view().loop is None
    assert job.view().call_line is None


@pytest.mark.parametrize(
    ("part", "of", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (0, 0, 0, 1)]
)
def test_wilson_interval(part: int, of: int, low: float, high: float) -> None:
    """The interval of a share is Wilson's, with its published values."""
    assert proportion.interval(part / max(1, of), of) == pytest.approx((low, high), abs=1e-4)


@given(of=st.integers(1, 10_000), share=st.floats(0, 1))
def test_wilson_interval_solves_its_equation(of: int, share: float) -> None:
    """At both ends the share lies 1.96 standard errors of that end away; the interval lies within 0 and 1."""
    low, high = proportion.interval(share, of)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1
    for end in (low, high):
        if 1e-9 < end < 1 - 1e-9:
            assert abs(share - end) == pytest.approx(1.96 * math.sqrt(end * (1 - end) / of), rel=1e-4, abs=1e-9)


def test_shares_are_of_time_not_of_samples() -> None:
    """A sample counts by the time that it stands for: 10 of 30 ms weigh as much as 30 of 10 ms."""
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, SLOW, dur=30 * MS)
    job.samples(times(30, 80 * MS), MAIN, Frame("/job/log.py", "log", 3), dur=10 * MS)
    spots = job.view().hot_spots("other-python")
    assert {s.culprit.function: (s.samples, s.ratio) for s in spots} == {"confusion": (10, 0.5), "log": (30, 0.5)}


def test_a_wrapper_that_shortens_tracebacks_is_not_what_a_line_calls() -> None:
    """What the user's line calls is named behind Keras' traceback wrapper, whose code has a qualified name."""
    wrapper = Frame(
        "/usr/lib/python3/site-packages/keras/src/utils/traceback_utils.py",
        "filter_traceback.<locals>.error_handler",
        120,
        own=False,
    )
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, wrapper, KERAS)
    (spot,) = job.view().hot_spots("other-python")
    assert spot.called == "fit"


def test_pythons_import_system_is_not_what_a_line_calls() -> None:
    """An import statement calls the module that it runs, not the machinery that finds it."""
    finder = Frame("<frozen importlib._bootstrap>", "_find_and_load", 1176, own=False)
    job = looped()
    job.samples(times(10, 70 * MS), MAIN, finder, KERAS)
    (spot,) = job.view().hot_spots("other-python")
    assert spot.called == "fit"


def test_a_thread_that_makes_steps_is_never_idle() -> None:
    """Samples of an idle thread stand for no time; those of the steps' thread stand for the time since the last one,
    unless its CPU clock says what it used.
    """
    for clock, weights in ((0, [0, 60 * MS, 200 * MS]), (int(Flag.CPU), [0, 0, 0])):
        job = looped()
        job.samples([PERIOD, PERIOD + 60 * MS, 9 * PERIOD], MAIN, SLOW, dur=0)
        job.samples([20 * PERIOD], MAIN, SLOW, dur=MS, flags=clock)
        steps = job.view().steps
        assert steps is not None
        assert [sample.weight_ns for sample in stack_samples.all_samples(steps)][:3] == weights


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("train", "train"),
        ("train.<locals>.<listcomp>", "train"),
        ("norms.<locals>.<dictcomp>.<listcomp>", "norms"),
        ("norms.<locals>.<genexpr>.<locals>.<genexpr>", "norms"),
        ("train.<locals>.step", "train.<locals>.step"),
        ("<listcomp>", "<listcomp>"),
    ],
)
def test_a_comprehension_is_a_part_of_its_function(name: str, function: str) -> None:
    """One in another, too."""
    assert stack_samples.plain(name) == function
