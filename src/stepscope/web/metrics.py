"""Running jobs in Prometheus' text format. Labels are bounded: a job's pid, session and components."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric

    from stepscope.model.api.rest_api import Job

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
JOB = ("pid", "session")
MAX_LABEL = 200


class _Jobs:
    """A collector for one moment."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        """Expose these jobs."""
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        """Every metric, with one sample for each job that has it."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        info = InfoMetricFamily("stepscope_job", "A running job that is being measured.", labels=JOB)
        steps = CounterMetricFamily("stepscope_steps", "Steps since the job's start.", labels=JOB)
        rate = GaugeMetricFamily("stepscope_steps_per_second", "Average over the last few seconds.", labels=JOB)
        samples = GaugeMetricFamily("stepscope_samples_per_second", "Average over the last few seconds.", labels=JOB)
        share = GaugeMetricFamily("stepscope_step_share_ratio", "Share of the step.", labels=(*JOB, "component"))
        found = GaugeMetricFamily("stepscope_findings", "Current number of findings.", labels=JOB)
        captures = GaugeMetricFamily("stepscope_captures", "Most recent captures, by state.", labels=(*JOB, "state"))
        spent = GaugeMetricFamily("stepscope_captures_cost_ratio", "Share of the job's time.", labels=JOB)
        sidecar = GaugeMetricFamily("stepscope_sidecar_core_ratio", "Cores used by measuring.", labels=JOB)
        hang = GaugeMetricFamily(
            "stepscope_hang_seconds",
            "Time without work of a job that hangs, or (state busy) computes without a batch; absent otherwise.",
            labels=(*JOB, "state", "kind", "place", "waits"),
        )
        for job in self._jobs:
            status = job.status
            labels = (str(job.pid), _label(Path(status.session).name))
            about = {"name": job.name, "user": job.user, "state": job.state, "framework": status.framework}
            info.add_metric(labels, {name: _label(value) for name, value in about.items()})
            steps.add_metric(labels, status.steps)
            if status.steps_per_s is not None:
                rate.add_metric(labels, status.steps_per_s)
            if status.samples_per_s is not None:
                samples.add_metric(labels, status.samples_per_s)
            for part in status.anatomy:
                share.add_metric((*labels, _label(part.component)), part.ratio)
            if status.hang is not None:
                lasts = max(0.0, status.updated_unix_s - status.hang_since_unix_s)
                told = status.hang
                place = f"{told.file}:{told.line} {told.function}"
                hang.add_metric((*labels, *map(_label, (told.state, told.kind, place, told.text))), lasts)
            if status.analysed_unix_s:
                found.add_metric(labels, status.findings)
            for state, count in Counter(capture.state for capture in status.captures).items():
                captures.add_metric((*labels, _label(state)), count)
            spent.add_metric(labels, status.captures_ratio)
            sidecar.add_metric(labels, status.sidecar_core_ratio)
        yield from (info, steps, rate, samples, share, found, captures, spent, sidecar, hang)


def _label(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:MAX_LABEL]


def exposition(jobs: Sequence[Job]) -> bytes:
    """All metrics of these jobs."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Jobs(jobs))
    return generate_latest(registry)
