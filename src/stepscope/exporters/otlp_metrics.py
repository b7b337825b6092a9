"""A session's figures as OTLP metrics: what a monitoring system keeps of many jobs (docs/exporting.md#otlp).

One request for each session, as a receiver takes it at ``/v1/metrics``. Needs the package ``opentelemetry-proto``,
whose messages are all that is used of OpenTelemetry. Source: https://opentelemetry.io/docs/specs/otlp/
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

from stepscope._version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Manifest
    from stepscope.tables.findings import Finding
    from stepscope.tables.records import I64

    Attributes = Mapping[str, str | int]
    Point = tuple[float, Attributes]

BOUNDS_S = tuple(base * 10.0**power for power in range(-4, 3) for base in (1.0, 2.0, 5.0))
"""Upper ends of the histogram's buckets, in seconds: 0.1 ms to 500 s."""


def encode(report: Report, manifest: Manifest, durations_ns: I64, wholes: Sequence[str]) -> bytes:
    """An ExportMetricsServiceRequest.

    Args:
        report: whose figures they are.
        manifest: of its session.
        durations_ns: int64[step], of the steady steps.
        wholes: what the cost of each finding is a share of: step, turn or run.
    """
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    resource.resource.attributes.extend(_attributes(_who(report, manifest)))
    scope = resource.scope_metrics.add()
    scope.scope.name, scope.scope.version = "stepscope", __version__
    start = manifest.started_unix_ns
    times = {"start_time_unix_nano": start, "time_unix_nano": start + manifest.ended_ns}
    steps = scope.metrics.add(name="stepscope.steps", unit="{step}", description="Steps that were seen.")
    steps.sum.is_monotonic, steps.sum.aggregation_temporality = True, AGGREGATION_TEMPORALITY_CUMULATIVE
    steps.sum.data_points.add(as_int=report.session.steps, **times)
    if len(durations_ns):
        metric = scope.metrics.add(name="stepscope.step.duration", unit="s", description="Time of the steady steps.")
        metric.histogram.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
        metric.histogram.data_points.add(**times, **_histogram(durations_ns))
    for name, unit, description, points in _gauges(report, wholes):
        metric = scope.metrics.add(name=name, unit=unit, description=description)
        for value, attributes in points:
            metric.gauge.data_points.add(as_double=value, attributes=_attributes(attributes), **times)
    data: bytes = request.SerializeToString()
    return data


def _histogram(durations_ns: I64) -> dict[str, object]:
    """Its fields; a bucket holds its upper end."""
    seconds = durations_ns / 1e9
    counts = np.bincount(np.searchsorted(BOUNDS_S, seconds, side="left"), minlength=len(BOUNDS_S) + 1)
    return {
        "count": len(seconds),
        "sum": float(seconds.sum()),
        "min": float(seconds.min()),
        "max": float(seconds.max()),
        "explicit_bounds": BOUNDS_S,
        "bucket_counts": counts.tolist(),
    }


def _who(report: Report, manifest: Manifest) -> Attributes:
    """Attributes of the resource: semantic conventions of OpenTelemetry where there are any."""
    return {
        "service.name": manifest.name,
        "service.instance.id": manifest.id,
        "host.name": manifest.host.name,
        "process.command_line": " ".join(manifest.command),
        "process.pid": manifest.job_pid,
        "stepscope.framework": report.session.framework,
    }


def _gauges(report: Report, wholes: Sequence[str]) -> Iterator[tuple[str, str, str, list[Point]]]:
    """Name, unit, description and points of each gauge that is known."""
    speed = report.session.throughput
    for name, value, unit in (
        ("samples", speed.samples_per_s, "{sample}/s"),
        ("steps", speed.steps_per_s, "{step}/s"),
    ):
        if value is not None:
            yield f"stepscope.throughput.{name}", unit, f"{name.capitalize()} in a second.", [(value, {})]
    parts: list[Point] = [(part.ratio, {"component": part.component}) for part in report.anatomy]
    if parts:
        yield "stepscope.step.component", "1", "Share of a part in the mean steady step.", parts
    ranked = zip(count(1), report.findings, wholes, strict=False)
    costs = [(finding.cost.ratio, _of(rank, finding, whole)) for rank, finding, whole in ranked]
    if costs:
        yield "stepscope.finding.cost", "1", "Predicted gain of a finding's remedy.", costs
    yield "stepscope.overhead", "1", "Share of the step time that measuring took.", [(report.overhead.ratio, {})]


def _of(rank: int, finding: Finding, whole: str) -> Attributes:
    place = finding.where[0] if finding.where else None
    found: dict[str, str | int] = {"code": finding.code, "rank": rank, "severity": finding.severity}
    found |= {"title": finding.title, "of": whole}
    if place is not None:
        found |= {"code.file.path": place.file, "code.line.number": place.line, "code.function.name": place.function}
    return found


def _attributes(values: Attributes) -> Sequence[object]:
    """The messages of attributes; what is not known, "", is left out."""
    made = {
        key: AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)
        for key, value in values.items()
        if value != ""
    }
    return [KeyValue(key=key, value=value) for key, value in made.items()]
