"""Jobs whose resources are sampled: network, disks, GPUs, written second by second.

The machine is sampled once a second for ten seconds; of its samples nine lie within the steady steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from tests.derive.sessions import MS, SCRIPT, Job, S, filled, node
from tests.detectors.jobs import MAIN_CALL, PERIOD, SOURCE, STEPS, pulled

from stepscope.model.log.program import DeviceMemory
from stepscope.model.session.session import HostInfo
from stepscope.tables.records import BurstTable, CoreTable, DiskTable, GpuTable, LinkTable, MemoryTable, ProcessTable

MISSING = "samples of network and disks"
NO_GPU_SAMPLES = "samples of the GPU"
SECONDS = 10
MB = 1_000_000
LOOK = 20 * MS
GB = 1000 * MB
I64 = npt.NDArray[np.int64]


def totals(rates: Sequence[float]) -> I64:
    """A counter from its growth in each second."""
    return np.concatenate(([0], np.cumsum(np.asarray(rates)))).astype(np.int64)


def sampled_machine(job: Job, *, got: float = 1.0, others: float = 0.0) -> Job:
    """The host once a second, nothing on its network and disks."""
    job.machine(SECONDS, cpus=2, got=got, others=others)
    at = job.hosts.at_ns
    job.resources["cores"] = filled(CoreTable, len(at), at_ns=at, busy_ns=at // 2)
    return job


def set_process(job: Job, **columns: I64) -> None:
    """Other columns of the process's samples."""
    table = job.processes
    names = table.__struct_fields__
    job.processes = ProcessTable(**{name: columns.get(name, getattr(table, name)) for name in names})


def on_network(
    job: Job,
    received: Sequence[float],
    sent: Sequence[float] = (0.0,) * SECONDS,
    *,
    own: float = 1.0,
    unread: int = 0,
    gaps: float | None = 0.0,
    speed: int = -1,
) -> Job:
    """Bytes of each second on the network.

    Args:
        job: sampled by ``sampled_machine``.
        received: in each second.
        sent: in each second.
        own: share of them that arrives at connections of the process.
        unread: bytes that lie unread at each look.
        gaps: share of the close looks in which nothing arrives; None for no close looks.
        speed: of the link, bits a second.
    """
    at = job.hosts.at_ns
    rx, tx = totals(received), totals(sent)
    job.resources["resource_names"] = ("net:eth0",)
    job.resources["links"] = filled(
        LinkTable, len(at), at_ns=at, rx_bytes=rx, tx_bytes=tx, speed_bits_s=np.full(len(at), speed)
    )
    set_process(job, tcp_rx_bytes=(own * rx).astype(np.int64), tcp_queued_bytes=np.full(len(at), unread))
    if gaps is not None:
        looks = 3 * S + np.arange(100, dtype=np.int64) * LOOK
        on = (np.arange(100) % 20 >= round(20 * gaps)).astype(np.int64)
        job.resources["bursts"] = filled(BurstTable, 100, at_ns=looks, rx_bytes=np.cumsum(on) * MB)
    return job


def over_network(wait: int, *, own: float = 1.0, unread: int = 0, gaps: float | None = 0.0, speed: int = -1) -> Job:
    """A loop that waits for a batch in each step of 100 ms, 5 MB/s on the wire."""
    job = sampled_machine(pulled(wait))
    return on_network(job, (5 * MB,) * SECONDS, own=own, unread=unread, gaps=gaps, speed=speed)


def in_turns(idle: int, *, contrast: bool = True) -> Job:
    """A loop that downloads in seconds that are waited for, and computes in the others beside an idle wire.

    Args:
        idle: of ten seconds, those without a download.
        contrast: the waiting is in the seconds with the download; else it is spread evenly.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    batched = job.dataset("BatchDataset", job.dataset("FromGenerator", line=70), line=72, batch=8)
    iterator = job.iterator(batched, batch=8)
    busy = [second % 10 >= idle for second in range(SECONDS)]
    call, nexts = job.function(**MAIN_CALL), job.nexts()
    for i in range(STEPS):
        share = 1.0 - idle / 10
        wait = (95 * MS if busy[i * PERIOD // S] else 0) if contrast else round(share * 95) * MS
        nexts.at(i * PERIOD, wait + MS // 10, arg=iterator)
        call.at(i * PERIOD + wait + MS // 5, 99 * MS - wait)
    stage = [node(1, "Batch", 2, elements=90, busy=90 * MS), node(2, "Generator", elements=720, busy=90 * 50 * MS)]
    job.model(iterator, 9 * S, stage)
    return on_network(sampled_machine(job), [8 * MB * b for b in busy], gaps=None)


def uploading(seconds: int, beside: float, *, wait: int = 60 * MS) -> Job:
    """A loop on a network; in ``seconds`` of the ten it also uploads, and ``beside`` of the input arrives.

    Args:
        seconds: with an upload.
        beside: share of the usual input that arrives in them.
        wait: of a step in these seconds; otherwise it takes its batch at once.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    iterator = job.iterator(job.dataset("BatchDataset", line=72, batch=8), batch=8)
    call, nexts = job.function(**MAIN_CALL), job.nexts()
    up = [second < seconds for second in range(SECONDS)]
    for i in range(STEPS):
        held = wait if up[i * PERIOD // S] else MS // 10
        nexts.at(i * PERIOD, held, arg=iterator)
        call.at(i * PERIOD + held, 20 * MS)
    received = [5 * MB * (beside if u else 1.0) for u in up]
    return on_network(sampled_machine(job), received, [4 * MB * u for u in up], gaps=None)


def from_disk(
    busy: float,
    *,
    wait: int = 60 * MS,
    limit: int = -1,
    own: float = 1.0,
    held: float = 0.0,
    requests: float = 1.0,
) -> Job:
    """A loop that waits for a batch, and reads 6 MB/s from a disk.

    Args:
        busy: share of the time with a request in flight.
        wait: of each step of 100 ms.
        limit: what the cgroup may read a second.
        own: share of the reads that is the process's.
        held: share of the gigabyte that the cgroup may hold; 0 for no limit.
        requests: in flight while the disk is busy.
    """
    job = sampled_machine(pulled(wait))
    at = job.hosts.at_ns
    if held:
        limits = np.full(len(at), GB)
        used = np.rint(held * limits).astype(np.int64)
        job.resources["memory"] = filled(
            MemoryTable, len(at), at_ns=at, cgroup_bytes=used, cgroup_limit_bytes=limits, cgroup_file_bytes=used // 2
        )
    read = totals((6 * MB,) * SECONDS)
    set_process(job, read_bytes=(own * read).astype(np.int64))
    job.resources["resource_names"] = ("disk:sda",)
    job.resources["disks"] = filled(
        DiskTable,
        len(at),
        at_ns=at,
        whole=np.ones(len(at), np.int64),
        read_bytes=read,
        reads=read // 65_536,
        busy_ns=np.rint(busy * at).astype(np.int64),
        queue_ns=np.rint(requests * busy * at).astype(np.int64),
        limit_bytes_s=np.full(len(at), limit),
    )
    return job


def dipping(
    every: int,
    *,
    within: float = 0.2,
    slower: float = 0.7,
    others: float = 0.0,
    usual: float = 1.5,
    dips: Sequence[int] = (),
) -> Job:
    """A loop that in one second of ``every`` uses little CPU and makes fewer steps.

    Args:
        every: seconds from dip to dip; thirty seconds in all.
        within: cores in a dip.
        slower: share of the usual steps that a dip's second makes.
        others: cores of other processes in dips.
        usual: cores outside of dips.
        dips: the seconds that are dips, where not one of ``every``.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    call = job.function(**MAIN_CALL)
    low = [second in dips if dips else second % every == every - 1 for second in range(3 * SECONDS)]
    for second, dip in enumerate(low):
        steps = round(10 * slower) if dip else 10
        for i in range(steps):
            call.at(second * S + i * S // steps, 9 * S // (10 * steps))
    job.machine(3 * SECONDS, cpus=2)
    at = job.hosts.at_ns
    columns = {name: getattr(job.hosts, name) for name in job.hosts.__struct_fields__}
    columns["job_cpu_ns"] = totals([S * (within if dip else usual) for dip in low])
    columns["others_cpu_ns"] = totals([S * (others if dip else 0.0) for dip in low])
    job.hosts = type(job.hosts)(**columns)
    job.resources["cores"] = filled(CoreTable, len(at), at_ns=at)
    return job


def gpu_steps(
    busy: Sequence[int],
    *,
    late: int = 0,
    live: int = -1,
    reserved: int = 70_000 * MB,
    own: int | None = None,
) -> Job:
    """A loop with a GPU of 80 GB.

    Args:
        busy: percent in each second.
        late: seconds before the first step.
        live: bytes of tensors; -1 unknown.
        reserved: device memory in use.
        own: of that, by the job; all of it by default.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    iterator = job.iterator(job.dataset("BatchDataset", line=72, batch=8), batch=8)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=80 * MS, start=late * S + MS)
    job.nexts().every(PERIOD, STEPS, dur=MS // 10, start=late * S, arg=iterator)
    at = np.arange(len(busy), dtype=np.int64) * S
    job.host = HostInfo(gpus=1)
    if live >= 0:
        job.events.append(DeviceMemory(at=late * S + 2 * MS, device="GPU:0", current=live // 2, peak=live))
    job.resources["resource_names"] = ("gpu:0 Written GPU",)
    job.resources["gpus"] = filled(
        GpuTable,
        len(at),
        at_ns=at,
        busy_percent=np.asarray(busy, np.int64),
        reserved_bytes=np.full(len(at), reserved),
        job_reserved_bytes=np.full(len(at), reserved if own is None else own),
        total_bytes=np.full(len(at), 80_000 * MB),
    )
    return job


def gpu_unsampled(job: Job) -> Job:
    """A host with a GPU that nothing could be asked about."""
    job.host = HostInfo(gpus=1, gpu_problem="nvidia-ml-py is not installed")
    return job
