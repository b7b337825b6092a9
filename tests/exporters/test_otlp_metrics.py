"""Sessions as OTLP metrics, as a receiver gets them."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, Job, S
from tests.report.samples import finding
from tests.web import recorded

from stepscope.derive.view import SessionView
from stepscope.diagnosis.analyze import report_of
from stepscope.exporters import otlp_metrics
from stepscope.sessions.bundle import open_session
from stepscope.tables.errors import UsageError
from stepscope.use_cases import export as use_case

service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
STEPS, SLOW = 60, 40


@pytest.fixture(scope="module", name="session")
def _session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty steps of 100 ms, the fortieth of 600."""
    job = Job(ended_ns=8 * S)
    work = job.function()
    for number in range(STEPS):
        at = 500 * MS + number * 100 * MS + (500 * MS if number > SLOW else 0)
        work.at(at, 590 * MS if number == SLOW else 90 * MS)
    return recorded.write(job.session(), tmp_path_factory.mktemp("otlp") / "job.stepscope").path


@contextmanager
def receiver() -> Iterator[tuple[str, list[object]]]:
    """An address on loopback that takes metrics as OTLP over HTTP does, and what has arrived."""
    arrived: list[object] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert (self.path, self.headers["Content-Type"]) == ("/v1/metrics", "application/x-protobuf")
            arrived.append(
                service.ExportMetricsServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Takes)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/metrics", arrived
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_receiver_gets_the_figures_of_the_report(session: Path, tmp_path: Path) -> None:
    """Steps, their times, parts, findings and the session's times, each equal to what the report has."""
    path = tmp_path / "job.otlp.pb"
    done = use_case.export(use_case.ExportOptions(session=session, form="otlp", output=path))
    assert done.path == path
    with receiver() as (address, arrived):
        head = {"Content-Type": "application/x-protobuf"}
        urllib.request.urlopen(urllib.request.Request(address, path.read_bytes(), head)).close()
    ((resource,),) = map(attrgetter("resource_metrics"), arrived)
    opened = open_session(session)
    report, steps = report_of(opened), SessionView(opened).steps
    assert steps is not None
    who = {one.key: one.value.string_value or one.value.int_value for one in resource.resource.attributes}
    assert who["service.instance.id"] == opened.manifest.id
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    (seen,) = metrics["stepscope.steps"].sum.data_points
    assert seen.as_int == report.session.steps
    assert seen.start_time_unix_nano == opened.manifest.started_unix_ns
    assert seen.time_unix_nano - seen.start_time_unix_nano == opened.manifest.ended_ns
    (times,) = metrics["stepscope.step.duration"].histogram.data_points
    steady = steps.durations[steps.steady] / 1e9
    assert (times.count, times.max) == (len(steady), steady.max())
    assert times.sum == pytest.approx(steady.sum())
    ends = [-np.inf, *times.explicit_bounds, np.inf]
    expected = [int(((steady > low) & (steady <= high)).sum()) for low, high in pairwise(ends)]
    assert list(times.bucket_counts) == expected
    parts = metrics["stepscope.step.component"].gauge.data_points
    assert {point.attributes[0].value.string_value: point.as_double for point in parts} == {
        part.component: part.ratio for part in report.anatomy
    }


def test_findings_have_their_lines(session: Path) -> None:
    """Code, rank, place, and what the cost is a share of."""
    opened = open_session(session)
    report = report_of(opened)
    given = replace(report, findings=(finding(),))
    made = otlp_metrics.encode(given, opened.manifest, np.empty(0, np.int64), ["run"])
    (scope,) = service.ExportMetricsServiceRequest.FromString(made).resource_metrics[0].scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    (point,) = metrics["stepscope.finding.cost"].gauge.data_points
    said = {one.key: one.value.string_value or one.value.int_value for one in point.attributes}
    one = finding()
    assert point.as_double == one.cost.ratio
    assert (said["code"], said["rank"], said["of"]) == (one.code, 1, "run")
    assert (said["code.file.path"], said["code.line.number"]) == (one.where[0].file, one.where[0].line)
    assert "stepscope.step.duration" not in metrics


def test_a_range_is_refused(session: Path, tmp_path: Path) -> None:
    """The figures are those of the whole session."""
    asked = use_case.ExportOptions(session=session, form="otlp", output=tmp_path / "x.pb", range="steady")
    with pytest.raises(UsageError, match="whole session"):
        use_case.export(asked)
    assert not (tmp_path / "x.pb").exists()
