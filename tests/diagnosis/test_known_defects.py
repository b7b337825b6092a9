"""Known defects of installed versions: said of a finding that measures the symptom, and of nothing else."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job, S
from tests.detectors.death_jobs import dying, value
from tests.detectors.jobs import train_loop
from tests.detectors.trend_jobs import MB, leaking

from stepscope.diagnosis.analyze import report_of

OLD = "2.0.1"


def predicting(job: Job, version: str, *, role: str = "predict", count: int = 3) -> Job:
    """A job of this version that also calls Keras' loops."""
    job.framework("tensorflow", version)
    loop = job.loop(role)
    for at in range(count):
        loop.at(9 * S + at * 100 * MS, MS)
    return job


def test_a_leak_that_is_known_is_said_with_its_issue() -> None:
    """The finding keeps its severity and its own remedies; the way out follows, with the issue's address."""
    plain = next(f for f in report_of(leaking(10 * MB).session()).findings if f.code == "MEM001")
    known = next(f for f in report_of(predicting(leaking(10 * MB), OLD).session()).findings if f.code == "MEM001")
    assert "tensorflow/issues/33030" in known.explanation
    assert known.remedies[-1].id == "known-tensorflow-33030"
    assert known.remedies[: len(plain.remedies)] == plain.remedies
    assert (known.severity, known.cost) == (plain.severity, plain.cost)


@pytest.mark.parametrize(
    "job",
    [
        predicting(leaking(10 * MB), "2.21.0"),
        predicting(leaking(10 * MB), OLD, count=1),
        predicting(leaking(10 * MB), OLD, role="predict_on_batch"),
        predicting(train_loop(80 * MS), OLD),
    ],
)
def test_without_version_call_or_symptom_nothing_is_said(job: Job) -> None:
    """Another version, a single call, another call, or no rise of memory."""
    assert "Known defect" not in "".join(f.explanation for f in report_of(job.session()).findings)


@pytest.mark.parametrize(
    ("name", "version", "issue"),
    [
        ("torch", "2.5.1+cu124", "pytorch/pull/141960"),
        ("torch", "2.6.0", ""),
        ("numpy", "2.4.0", "numpy/issues/30547"),
        ("numpy", "2.4.1", ""),
        ("jax", "0.4.30", ""),
    ],
)
def test_other_frameworks_than_tensorflow_have_defects(name: str, version: str, issue: str) -> None:
    """The version is that which the process said when it imported the framework."""
    job = leaking(10 * MB)
    job.framework(name, version)
    told = next(f for f in report_of(job.session()).findings if f.code == "MEM001").explanation
    assert (issue in told) if issue else ("Known defect" not in told)


def test_a_dead_job_of_onnx_runtime_is_told_what_is_known_of_its_version() -> None:
    """It died for lack of memory, and its version takes too much."""
    told = {}
    for version in ("1.23.1", "1.26.0"):
        job = dying(value("history", 1500 * MB, count=1200))
        job.framework("onnxruntime", version)
        told[version] = next(f for f in report_of(job.session()).findings if f.code == "MEM004").explanation
    assert "onnxruntime/issues/28466" in told["1.26.0"]
    assert "Known defect" not in told["1.23.1"]
