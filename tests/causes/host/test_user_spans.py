"""The user's own metrics and spans, as derived from a session."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.derive.with_steps import view_of
from tests.detectors.jobs import sampled

from stepscope.causes.host import user_spans
from stepscope.derive.machine import metrics
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.events import Metric
from stepscope.report.document import metrics as metric_charts
from stepscope.report.page.charts import Chart, LeftOut
from stepscope.report.sections import series
from stepscope.wire.kinds import Kind


def tell(job: Job, name: str, values: list[float]) -> None:
    """Values of a metric, one each 10 ms."""
    call = job.call(Kind.METRIC, name)
    for i, value in enumerate(values):
        call.at(i * 10 * MS, 0, arg=struct.unpack("<q", struct.pack("<d", value))[0])


def test_values_are_those_that_were_told() -> None:
    """Doubles travel bit for bit; lines of older sessions count too."""
    job = Job()
    tell(job, "loss", [0.1, -1e300, 3.0])
    job.event(Metric(at=50 * MS, name="loss", value=4.0))
    (loss,) = metrics.build(job.session().workers)
    assert loss.name == "loss"
    assert loss.values.tolist() == [0.1, -1e300, 3.0, 4.0]
    assert (np.diff(loss.at_ns) > 0).all()


def test_series_and_charts() -> None:
    """A metric is a series of at most 200 points, and a chart whose axis begins near its least value."""
    job = Job()
    tell(job, "accuracy", [0.90 + i / 10_000 for i in range(1000)])
    tell(job, "below zero", [-5.0, -3.0])
    tell(job, "once", [1.0])
    found = series.build(job.view())
    assert len(found["metric:accuracy"]) == len(found["metric_t:accuracy"]) == 200
    charts = {title: chart for chart, title in metric_charts.metrics(found)}
    assert isinstance(charts["accuracy"], Chart)
    assert "From 0.9" in charts["accuracy"].summary
    assert isinstance(charts["below zero"], Chart)
    assert isinstance(charts["once"], LeftOut)


def test_a_span_that_holds_most_of_a_finding_is_evidence() -> None:
    """The user's own name for the slow part stands with the finding; a short span beside it does not."""
    job = sampled(before=60 * MS)
    place = {"call_file": SCRIPT, "call_line": 43, "call_function": "main"}
    job.call(Kind.SPAN, "augment", **place).every(100 * MS, 100, dur=59 * MS)
    job.call(Kind.SPAN, "log", **place).every(100 * MS, 100, dur=2 * MS, start=60 * MS)
    inside = {name.text: ratio for name, ratio in user_spans.python_inside(view_of(job))}
    assert inside == {"augment": pytest.approx(0.59)}
    findings, _, _ = run(ALL, job.view())
    assert "span augment" in [e.metric for e in findings[0].evidence]
    assert 'span "augment"' in [p.function for p in findings[0].where]
    assert "span log" not in [e.metric for e in findings[0].evidence]
