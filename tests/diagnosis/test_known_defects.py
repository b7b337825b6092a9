"""Known defects of installed versions: said of a finding that measures the symptom, and of nothing else."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job, S
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
