"""What is said of a detector that cannot look, and every hint, is true for the job's framework."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest
from tests.derive.sessions import MS, Job
from tests.detectors import framework_jobs as jobs
from tests.detectors.jobs import keras_fit

from stepscope.agent import bootstrap
from stepscope.derive import job_framework
from stepscope.detectors.base import present, run
from stepscope.detectors.registry import ALL
from stepscope.detectors.signals import Signal, given, hint
from stepscope.diagnosis import analyze
from stepscope.experiments import interventions, plan
from stepscope.model.frameworks import parts_of
from stepscope.model.report.report import Component, Report
from stepscope.report import checked_words, text
from stepscope.tables.findings import Checked

OTHERS: dict[str, Callable[[], Job]] = {
    "PyTorch": jobs.pytorch,
    "JAX": jobs.jax,
    "NumPy": jobs.numpy,
    "ONNX Runtime": jobs.onnxruntime,
    "a program without a framework": jobs.plain,
    "Keras on PyTorch": lambda: jobs.keras_on("torch", "2.13.0"),
    "Keras on JAX": lambda: jobs.keras_on("jax", "0.10.2", steps=False),
}
"""Jobs that TensorFlow does not compute, by what reports call their framework."""
OF_TENSORFLOW = re.compile(r"tensorflow|tf\.|keras|stepscope trace JOB(?! --kind native)", re.IGNORECASE)
"""Words of hints that help nobody whose job runs no TensorFlow."""
FOR_ANY = {"CFG001", "CFG003", "DSK001", "HST009", "MEM001", "MEM002", "MEM003", "MEM004", "NET001", "UTL001"}
"""Detectors of what the system shows of any process."""


def _checked(job: Job) -> dict[str, Checked]:
    return {one.detector: one for one in run(ALL, job.view())[1]}


def _of_job(title: str) -> list[str]:
    """The hints of a job: those of the detectors, and of every signal that a detector may miss in it."""
    view = OTHERS[title]().view()
    framework = job_framework.build(view)
    assert framework is not None
    missed = {signal for detector in ALL for signal in detector.needs if given(signal, framework)}
    return [*(one.hint for one in run(ALL, view)[1]), *(hint(signal, view) for signal in missed)]


@pytest.mark.parametrize("title", OTHERS)
def test_the_framework_has_its_name(title: str) -> None:
    """What makes the steps, or was imported, gives the name."""
    framework = job_framework.build(OTHERS[title]().view())
    assert framework is not None
    assert framework.title == title


@pytest.mark.parametrize("title", OTHERS)
def test_no_hint_speaks_of_another_framework(title: str) -> None:
    """No hint sends a job to a command, or names a thing, of a framework that it does not run."""
    said = [one.replace(title, "") for one in _of_job(title)]
    assert [one for one in said if OF_TENSORFLOW.search(one)] == []
    late = title in {"NumPy", "a program without a framework"}
    assert any("too short for samples" in one for one in said) is not late


@pytest.mark.parametrize("title", OTHERS)
def test_who_cannot_look_does_not_apply(title: str) -> None:
    """A detector of TensorFlow's things is neither clear nor undecided; one of any process's is not put off."""
    checked = _checked(OTHERS[title]())
    away = {code for code, one in checked.items() if one.hint == f"not applicable to {title}"}
    assert ("GRF001" in away) is ("JAX" not in title)
    assert {"GRF005", "GRF010", "HST002", "HST003", "INP001", "INP005", "KRN006", "LAY001"} <= away
    assert not away & FOR_ANY
    assert {checked[code].outcome for code in away} == {"not-applicable"}
    assert not any(checked_words.could_not_look(checked[code]) for code in away)


def test_a_job_of_tensorflow_is_looked_at_whole() -> None:
    """Of TensorFlow's job only what is PyTorch's and the models of ONNX Runtime are no matter."""
    away = {code for code, one in _checked(jobs.tensorflow()).items() if one.hint.startswith("not applicable to")}
    assert away == {"CFG007", "GRF023", "GRF025", "HST018", "HST019", "HST020", "INP015", "INP017"}


def test_where_nothing_says_the_framework_nothing_is_put_off() -> None:
    """Records of TensorFlow's calls without a line that names it: an older session is looked at as before."""
    assert job_framework.build(keras_fit(20 * MS).view()) is None
    assert not any(one.hint.startswith("not applicable to") for one in _checked(keras_fit(20 * MS)).values())


def test_an_input_of_tensorflow_before_another_framework_is_looked_at() -> None:
    """tf.data may feed PyTorch: its detectors apply, and an op trace of it can be taken; those of graphs do not."""
    checked = _checked(jobs.pytorch(tensorflow=True))
    assert checked["INP005"].missing == (Signal.OP_TRACE.value,)
    assert "stepscope trace JOB" in checked["INP005"].hint
    assert checked["GRF010"].hint == "not applicable to PyTorch"


def test_a_data_loader_is_looked_at_whatever_computes() -> None:
    """PyTorch's DataLoader may feed Keras on another backend."""
    job = jobs.keras_on("jax", "0.10.2")
    assert _checked(job)["INP015"].hint == "not applicable to Keras on JAX"
    job.framework("torch", "2.13.0")
    assert _checked(job)["INP015"].outcome == "clear"


def test_samples_are_missing_for_the_reason_that_is_true() -> None:
    """Too short is only said of steps that were: a sampled job with long steps lacks them for another reason."""
    short, long = jobs.tensorflow(), Job()
    long.framework()
    long.execution().every(100 * MS, 100, dur=80 * MS)
    assert hint(Signal.SAMPLES, short.view()) == "the run was too short for samples (20 per second)"
    assert hint(Signal.SAMPLES, long.view()) == "no sample was taken of the thread that makes the steps"


@pytest.mark.parametrize(("title", "whole"), [("NumPy", False), ("PyTorch", True), ("JAX", True)])
def test_stacks_are_missing_for_the_reason_that_is_true(title: str, whole: bool) -> None:
    """A process without a framework is sampled some seconds after its start; others from the import on."""
    said = _checked(OTHERS[title]())
    assert not said["HST001"].hint.startswith("not applicable to")
    assert ("five seconds after its start" in said["HNG001"].hint) is not whole


def test_missing_steps_have_the_hint_of_the_framework() -> None:
    """Of JAX nothing repeats that could be seen; of TensorFlow nothing repeated."""
    assert "none came at least four times" in hint(Signal.STEPS, jobs.unmarked_jax().view())
    empty = Job()
    empty.framework()
    assert "nothing repeats" in hint(Signal.STEPS, empty.view())


def test_who_is_sampled_is_whom_the_agent_samples() -> None:
    """The analysis and the agent have one list of the packages whose import starts the sampler."""
    assert frozenset(bootstrap.COMPUTES) == job_framework.SAMPLED


@pytest.mark.parametrize("title", OTHERS)
def test_nothing_is_offered_that_cannot_change_the_job(title: str) -> None:
    """No trial of TensorFlow's settings is suggested for another framework, however much there is to gain."""
    report = analyze.report_of_view(OTHERS[title]().view())
    parts = [
        Component(component=name, pipeline_stage="none", ratio=0.3, ns_per_step=1)
        for name in ("call", "input-wait", "callbacks", "saving", "gc", "tracing", "other-python")
    ]
    trials = {one.trial for one in plan.candidates(_with(report, parts))}
    assert not trials & {"xla-on", "batch:4", "mixed-bfloat16", "cache-input", "parallel-map", "prefetch"}
    assert trials <= {"gc-off", "gc-calls-off", "no-callbacks", "no-checkpoints", "steps-per-execution:10"}
    assert "gc-off" in trials
    assert ("no-checkpoints" in trials) == title.startswith("Keras")


def test_trials_are_offered_where_they_reach() -> None:
    """TensorFlow's job keeps all of them; where the parts are unknown none is left out."""
    parts = parts_of(analyze.report_of_view(jobs.tensorflow().view()).session.framework)
    assert all(interventions.reaches(one.name, parts) for one in interventions.ALL)
    assert all(interventions.reaches(one.name, ()) for one in interventions.ALL)
    assert not interventions.reaches("xla-on", ("python", "onnxruntime"))
    assert interventions.reaches("stub:train.py:3", ("python",))


@pytest.mark.parametrize("title", OTHERS)
def test_no_stage_needs_an_op_trace_that_cannot_be_taken(title: str) -> None:
    """Stages that only an op trace shows say whose op traces are not taken."""
    report = analyze.report_of_view(OTHERS[title]().view())
    bases = [stage.basis for stage in report.stages]
    assert not any("needs an op trace" in basis for basis in bases)
    measured = analyze.report_of_view(jobs.tensorflow().view()).stages
    assert any(stage.basis == "not measured: needs an op trace" for stage in measured)


def test_the_head_names_the_backend_of_keras() -> None:
    """Keras on another backend than TensorFlow is called so, with steps and without."""
    with_steps = analyze.report_of_view(jobs.keras_on("torch", "2.13.0").view())
    assert with_steps.session.framework == "keras 3.15.1 on torch 2.13.0"
    assert "Keras on PyTorch" in text.render(with_steps).splitlines()[0]
    without = analyze.report_of_view(jobs.keras_on("jax", "0.10.2", steps=False).view())
    assert "keras 3.15.1 on jax 0.10.2" in text.render(without, verbose=True)
    usual = analyze.report_of_view(jobs.tensorflow().view())
    assert usual.session.framework == "tensorflow 2.21.0, keras 3.15.1"
    assert " on " not in text.render(usual).splitlines()[0]


def test_the_summary_counts_them_apart() -> None:
    """They are counted with the framework's name, and are none of those that could not decide."""
    checked = list(_checked(jobs.pytorch()).values())
    said = checked_words.checked_short(checked)
    count = sum(one.hint == "not applicable to PyTorch" for one in checked)
    assert f"{count} not applicable to PyTorch" in said
    assert "stepscope trace" not in said
    long = checked_words.checked_long(checked)
    assert [line.count(",") + 1 for line in long if line.startswith(f"{count} not applicable to PyTorch: ")] == [count]


def test_the_disk_is_not_cleared_where_the_wait_is_not_seen() -> None:
    """Of JAX no wait for input is seen, so nothing says that steps do not wait; of PyTorch a DataLoader's is."""
    assert not _has_wait(jobs.jax())
    assert _has_wait(jobs.pytorch(loader=True))
    assert _has_wait(jobs.tensorflow())


def _has_wait(job: Job) -> bool:
    return Signal.INPUT_WAIT in present(job.view())


def _with(report: Report, parts: list[Component]) -> Report:
    return msgspec.structs.replace(report, anatomy=tuple(parts))
