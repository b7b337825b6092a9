"""Use of the GPUs, from NVML's samples: during the steady steps, and when they were first used.

Serves all detectors of the GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import busy_span
from stepscope.model.log.program import DeviceMemory

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64

MIN_SAMPLES = 3
PERIOD_NS = 1_000_000_000
"""Longest time before a sample of which NVML's busy share speaks: an earlier one tells of what was before the steps."""
USED_PERCENT = 1
"""A device that is busy for less of NVML's period is not used."""


class Gpu(Struct, frozen=True, kw_only=True):
    """One device during the steady steps."""

    name: str
    busy: F64
    """Share of each sample's period in which a kernel ran. float64[sample]."""
    reserved_bytes: int
    job_reserved_bytes: int
    """-1 if NVML does not say; 0 in containers that hide process numbers."""
    total_bytes: int
    live_bytes: int
    """Peak bytes of tensors, as the framework's allocator reported them to the agent; -1 unknown."""
    first_used_ns: int
    """When the device was first seen busy in the whole run; -1 never."""

    @property
    def busy_ratio(self) -> float:
        """Mean over the steady steps."""
        return round(float(self.busy.mean()), 9)


def build(view: StepsView) -> tuple[Gpu, ...]:
    """The devices that were sampled during the steady steps."""
    steps, session = view.steps, view.session
    if len(steps.windows[0]) == 0 or len(session.gpus) == 0:
        return ()
    lo, hi = view.get(busy_span.build)
    names, live = session.resource_names, live_peaks(session)
    found = []
    for text in sorted({names[int(n)] for n in np.unique(session.gpus.name) if int(n) < len(names)}):
        numbers = [i for i, name in enumerate(names) if name == text]
        whole = session.gpus.take(np.isin(session.gpus.name, numbers))
        table = whole.take((whole.at_ns >= lo + PERIOD_NS) & (whole.at_ns <= hi) & (whole.busy_percent >= 0))
        if len(table) < MIN_SAMPLES:
            continue
        used = whole.at_ns[whole.busy_percent >= USED_PERCENT]
        at, peaks = live.get(text.partition(" ")[0].removeprefix("gpu:"), ([], []))
        found.append(
            Gpu(
                name=text.removeprefix("gpu:"),
                busy=table.busy_percent / 100.0,
                reserved_bytes=int(table.reserved_bytes.max()),
                job_reserved_bytes=int(table.job_reserved_bytes.max()),
                total_bytes=int(table.total_bytes.max()),
                live_bytes=max((peak for moment, peak in zip(at, peaks, strict=True) if moment <= hi), default=-1),
                first_used_ns=int(used[0]) if len(used) else -1,
            )
        )
    return tuple(found)


def live_peaks(session: Session) -> dict[str, tuple[list[int], list[int]]]:
    """Peak of live bytes on each device, by the host's device number: (times, bytes), as the job reported it.

    The job counts the devices that it sees, NVML all of the host's: ``CUDA_VISIBLE_DEVICES`` maps them if it lists
    numbers. Processes that share a device are summed. CUDA's own order, fastest first, is assumed to be NVML's.
    """
    found: dict[str, tuple[list[int], list[int]]] = {}
    told: dict[str, dict[int, int]] = {}
    events = [(event.at, worker.info.pid, event) for worker in session.workers for event in worker.all(DeviceMemory)]
    for at, pid, event in sorted(events, key=lambda one: one[0]):
        kind, _, text = event.device.partition(":")
        visible = [part.strip() for part in event.visible.split(",") if part.strip()]
        number = int(text) if kind == "GPU" and text.isdigit() else -1
        if number < 0 or (visible and (number >= len(visible) or not visible[number].isdigit())):
            continue
        name = visible[number] if visible else text
        peaks = told.setdefault(name, {})
        peaks[pid] = event.peak
        times, sums = found.setdefault(name, ([], []))
        times.append(at)
        sums.append(sum(peaks.values()))
    return found


def no_gpu(view: SessionView) -> str:
    """Why detectors of GPUs do not apply: "" if there is a GPU, or samples of one."""
    host = view.session.manifest.host
    return "" if host.gpus or len(view.session.gpus) else "this host has no NVIDIA GPU"
