"""A step that runs eagerly although there is a tf.function: what is said of that function is true."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, FUNCTION_CALL, PERIOD, STEPS, TF, eager, train_loop

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.program import Setting
from stepscope.model.report.finding import Finding

MAIN = Frame(SCRIPT, "main", CALL)
PY_FUNCTION = Frame(f"{TF}/ops/script_ops.py", "EagerFunc._call", 148, own=False)


def find(job: Job) -> list[Finding]:
    """What all detectors say of it."""
    findings, _, failures = run(ALL, job.view())
    assert failures == ()
    return list(findings)


def beside_metric() -> Job:
    """An eager step that calls a small tf.function at its end."""
    job = train_loop(8 * MS, offset=85 * MS)
    return eager(49, 39, job=job)


def test_the_function_that_the_step_calls_is_named() -> None:
    """The step calls a tf.function for a small part: it is named with its share, and the rest is what runs eagerly."""
    (found,) = find(beside_metric())
    assert found.code == "HST002"
    assert "no tf.function" not in found.title
    assert "outside of its tf.function train_step, which takes 8.0 %" in found.title
    assert "outside of its tf.function train_step" in found.remedies[0].text
    assert ("train.py", 10) in [(p.file, p.line) for p in found.where]


def test_eager_work_beside_keras_step_is_said_to_be_beside_it() -> None:
    """Ops that prepare each batch of a compiled Keras step are outside of it: nobody lacks a tf.function around it."""
    job = Job()
    job.execution("train").every(PERIOD, STEPS, dur=8 * MS, start=85 * MS, arg=1)
    found = next(f for f in find(eager(49, 39, job=job)) if f.code == "HST002")
    assert "outside of Keras' compiled train step" in found.title


def test_functions_that_run_eagerly_by_a_setting_are_told_with_its_line() -> None:
    """Part of the eager time lies in a tf.function that a setting has run so: the setting's line is named."""
    job = beside_metric()
    job.event(Setting(name="run_functions_eagerly", value=True, file=SCRIPT, line=3, function="main"))
    eager(12, 9, job=job, below=(MAIN, FUNCTION_CALL))
    found = next(f for f in find(job) if f.code in {"HST002", "GRF003"})
    assert found.code == "HST002"
    assert "by tf.config.run_functions_eagerly at train.py:3" in found.title
    assert found.remedies[0].id == "remove-run-functions-eagerly"
    job.event(Setting(name="run_functions_eagerly", value=False, file=SCRIPT, line=4, function="main"))
    found = next(f for f in find(job) if f.code == "HST002")
    assert "run_functions_eagerly" not in found.title


def test_python_that_a_graph_calls_back_is_no_eager_step() -> None:
    """tf.py_function runs its ops one by one inside of a compiled step: no setting does it, and a function is there."""
    job = train_loop(99 * MS)
    codes = [f.code for f in find(eager(49, 39, job=job, below=(MAIN, FUNCTION_CALL, PY_FUNCTION)))]
    assert not {"HST002", "GRF003"} & set(codes)


def test_without_any_function_it_says_so() -> None:
    """A step that calls no compiled function lacks one."""
    (found,) = find(eager(49, 39))
    assert "no tf.function around it" in found.title
