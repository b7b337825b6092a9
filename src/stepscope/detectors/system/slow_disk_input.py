"""The disk delivers as much as it can, and the steps wait for more.

## What it detects
Steps wait for their input, the process reads from a disk, and the disk has a request of it in flight nearly all the
time, or the reads reach the rate that the job's cgroup allows.

## Why it matters
More decoding threads do not help while the bytes are missing. Reading less, reading once, or reading in larger pieces
and several at a time does.

## Evidence
`disk_busy_ratio`: share of the time with a request in flight (/proc/diskstats); `read_rate`: what the process read from
storage, not from the page cache (/proc/PID/io); `requests_in_flight` and `request_bytes`: one small request at a time
means that the reader asks too little of the disk. `limit_ratio`: share of the rate that the cgroup allows (io.max,
blkio.throttle). `memory_limit_ratio`: share of the cgroup's memory limit, if that is nearly reached: the page cache
then does not keep the data, and each epoch reads it from the disk again.

## Known limits
A disk that serves several requests at once may be busy all the time and still have capacity: with one request in flight
the remedy is to ask for more at a time. Network file systems have no device. Reads by other processes for the job (a
FUSE server, a loader in another process) are not this process's.

## Remedy
Cache the data in memory (`cache()`) or in the page cache, copy it to a faster disk, store it smaller (compressed, fewer
columns), read large sequential files (TFRecord) with `num_parallel_reads`; raise the cgroup's limit.

## References
Linux: Documentation/admin-guide/iostats.rst; Documentation/admin-guide/cgroup-v2.rst, io.max. tf.data performance
guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import input_cause, input_source
from stepscope.causes.job import hidden_wait
from stepscope.causes.system import slow_disk_input
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.slow_disk_input import DiskInput
    from stepscope.derive.steps_view import StepsView

MB = 1e6


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds; causes/system/slow_disk_input.py decides when a disk is full."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of steady wall time, as for a slow stage (INP001)."""
    max_in_flight: float = 1.5
    """Requests in flight below which the reader reads one after the other."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    disk, cause = view.get(slow_disk_input.build), view.get(input_cause.build)
    if disk is None or not disk.is_full:
        return
    if view.get(hidden_wait.build):
        yield Undecided(missing=Signal.INPUT_WAIT, hint="the disk is busy; whether steps wait for it is unknown")
        return
    if cause is not None and cause.limit == "disk" and cause.wait_ratio >= params.min_wait_ratio:
        yield _finding(view, disk, cause.wait_ratio, 2 * cause.error_ratio, params)


def _finding(view: StepsView, disk: DiskInput, wait: float, error: float, params: Params) -> Seen:
    limited = disk.limit_ratio > 0 and disk.limit_ratio >= disk.busy_ratio
    ratio = wait if limited else min(wait, disk.busy_ratio)
    rate = f"{format_rate(disk.job_read / MB)} MB/s"
    if limited:
        why = f"the cgroup's limit for the disk {disk.device} holds reads at {rate}"
    else:
        why = f"the disk {disk.device} is busy {format_ratio(disk.busy_ratio)} of the time and delivers {rate}"
    evidence = [
        Evidence(metric="disk_busy_ratio", value=disk.busy_ratio, unit="ratio"),
        Evidence(metric="read_rate", value=disk.job_read / MB, unit="MB/s"),
        Evidence(
            metric="input_wait_ratio",
            value=wait,
            unit="ratio",
            threshold=params.min_wait_ratio,
            refs=("component:input-wait",),
        ),
        Evidence(metric="requests_in_flight", value=disk.in_flight, unit="requests"),
        Evidence(metric="request_bytes", value=disk.request_bytes, unit="bytes"),
    ]
    if disk.limit > 0:
        evidence.append(Evidence(metric="limit_ratio", value=disk.limit_ratio, unit="ratio"))
    if disk.is_squeezed:
        evidence.append(Evidence(metric="memory_limit_ratio", value=disk.memory_ratio, unit="ratio"))
    return Seen(
        title=f"{why}; steps wait for input {format_ratio(wait)} of the time",
        confidence=0.85,
        cause="Hardware: improper configuration" if limited else "Data: inefficient data transmission",
        introduced_stage="environment setting" if limited else "data preparation",
        where=input_source.places(view),
        evidence=tuple(evidence),
        cost=cost_of(view, ratio, low=ratio - max(error, 0.3 * ratio), high=max(wait, ratio + error)),
        remedies=_remedies(disk, params, limited=limited),
        explanation="The bytes come from the disk, not from the page cache, and the disk has no time left. Until they "
        "arrive, the rest of the pipeline does not matter." + _why_read_again(disk),
    )


def _why_read_again(disk: DiskInput) -> str:
    if not disk.is_squeezed:
        return ""
    return (
        f" The cgroup uses {format_ratio(disk.memory_ratio)} of its limit of {format_bytes(disk.memory_limit)}, so the "
        "page cache does not keep the data, and the next epoch reads it again."
    )


def _remedies(disk: DiskInput, params: Params, *, limited: bool) -> tuple[Remedy, ...]:
    found = []
    if limited:
        found.append(Remedy(id="raise-limit", text="raise the cgroup's limit (io.max, blkio.throttle.read_bps_device)"))
    elif disk.in_flight < params.max_in_flight:
        now = "now only one read is in flight at a time"
        text = f"read several files at once (interleave or num_parallel_reads): {now}"
        found.append(Remedy(id="parallel-reads", text=text))
        text = f"read several files at once, by more workers or threads: {now}"
        found.append(Remedy(id="several-readers", text=text))
    if disk.is_squeezed:
        text = "raise the cgroup's memory limit, so that the files stay in the page cache after the first epoch"
        found.append(Remedy(id="raise-memory", text=text))
    found += [
        Remedy(
            id="cache-data",
            text="cache() the data in memory as it was read, before any map with random ops",
        ),
        Remedy(id="faster-disk", text="or copy it to a faster disk before training"),
        Remedy(id="smaller-data", text="store it smaller: compressed, uint8, only what is used, in few large files"),
    ]
    return tuple(found)


DETECTOR = Detector(
    code="DSK001",
    name="slow-disk-input",
    exposed_stage="training",
    pipeline_stage="raw-input",
    needs=frozenset({Signal.STEPS, Signal.RESOURCES}),
    params=Params(),
    detect=detect,
)
