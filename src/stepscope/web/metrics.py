"""Running jobs in Prometheus' text format. Labels are bounded: a job's pid, session and components."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric

    from stepscope.model.api.rest_api import Job
    from stepscope.model.api.status import LiveGpu

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
        gpus = _Gpus()
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
            gpus.add(labels, status.gpus)
        yield from (info, steps, rate, samples, share, found, captures, spent, sidecar, hang, *gpus.families())


class _Gpus:
    """Readings of the GPUs of the jobs' hosts; a reading that a card does not tell is left out."""

    FAMILIES: ClassVar = {
        "busy_ratio": ("stepscope_gpu_busy_ratio", "Share of NVML's last period in which a kernel ran."),
        "used_bytes": ("stepscope_gpu_memory_used_bytes", "Memory in use by all processes."),
        "job_bytes": ("stepscope_gpu_memory_job_bytes", "Memory in use by the job's measured processes."),
        "total_bytes": ("stepscope_gpu_memory_total_bytes", "Memory of the GPU."),
        "power_w": ("stepscope_gpu_power_watts", "Power that it takes."),
        "rx_bytes_s": ("stepscope_gpu_bus_received_bytes_per_second", "From the host, over 20 ms."),
        "tx_bytes_s": ("stepscope_gpu_bus_sent_bytes_per_second", "To the host, over 20 ms."),
    }
    """By field of ``LiveGpu``."""

    def __init__(self) -> None:
        """No readings."""
        from prometheus_client.core import GaugeMetricFamily

        labels = (*JOB, "gpu", "name")
        self._of = {field: GaugeMetricFamily(*about, labels=labels) for field, about in self.FAMILIES.items()}
        self._slowed = GaugeMetricFamily(
            "stepscope_gpu_slowed",
            "1: the reason holds the clock down now; without a reason, whether any does.",
            labels=(*labels, "reason"),
        )

    def add(self, job: tuple[str, str], gpus: Sequence[LiveGpu]) -> None:
        """The readings of one job's host."""
        for gpu in gpus:
            labels = (*job, str(gpu.index), _label(gpu.name))
            for field, family in self._of.items():
                value = getattr(gpu, field)
                if value is not None:
                    family.add_metric(labels, value)
            if gpu.slowed is not None:
                self._slowed.add_metric((*labels, ""), float(bool(gpu.slowed)))
                for reason in gpu.slowed:
                    self._slowed.add_metric((*labels, _label(reason)), 1.0)

    def families(self) -> tuple[Metric, ...]:
        """Every metric that has a reading."""
        return tuple(one for one in (*self._of.values(), self._slowed) if one.samples)


def _label(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:MAX_LABEL]


def exposition(jobs: Sequence[Job]) -> bytes:
    """All metrics of these jobs."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Jobs(jobs))
    return generate_latest(registry)
