"""Sessions of which every span is known: steps of 20 ms, a callback in each, an op trace of the second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S, filled
from tests.web import recorded

from stepscope.model.session.session import CaptureInfo
from stepscope.store import optrace
from stepscope.tables.records import BurstTable, DiskTable, LinkTable
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.session.session import Session

STEP = 20 * MS
OP = "StatefulPartitionedCall/gradient_tape/a_large_model_1/a_block_of_it_12/dense_1_2/MatMul/MatMul:MatMul"

MB = 1_000_000
LOOK = MS
SPIKE_AT = S + 500 * LOOK
"""A look of a burst in which 0.3 MB arrive: 300 MB/s, in a second of 5.3 MB and a run of 9.3."""


def session(steps: int = 200) -> Session:
    """Steps of 20 ms with a callback; a tracing; calls and samples that are only counted."""
    job = Job(ended_ns=steps * STEP)
    job.framework()
    job.sources[SCRIPT] = recorded.PROGRAM
    job.loop().at(0, steps * STEP)
    job.execution().every(STEP, steps, dur=10 * MS)
    job.callback("Plot.on_train_batch_end").every(STEP, steps, dur=7 * MS, start=11 * MS)
    job.trace(1 * MS, 5 * MS)
    job.call(Kind.FUNCTION, "tiny", file=SCRIPT, line=5).counted(30 * MS, calls=400, total=MS)
    job.samples(range(13 * MS, steps * STEP, 5 * STEP), Frame(SCRIPT, "main", 50))
    job.machine(4)
    _sample_resources(job)
    return job.session()


def _sample_resources(job: Job) -> None:
    """One network interface and one disk, once a second; a burst of looks at the network in the second second."""
    at = job.hosts.at_ns
    job.resources["resource_names"] = ("net:eth0", "disk:sda")
    received = np.array([0, 10, 63, 73, 93]) * MB // 10
    job.resources["links"] = filled(LinkTable, 5, at_ns=at, rx_bytes=received)
    name = np.ones(5, np.int64)
    job.resources["disks"] = filled(DiskTable, 5, at_ns=at, name=name, whole=name, write_bytes=at // 1000)
    looks = S + np.arange(1000, dtype=np.int64) * LOOK
    arrived = np.where(looks[1:] == SPIKE_AT + LOOK, 3 * MB // 10, MB // 200)
    job.resources["bursts"] = filled(BurstTable, 1000, at_ns=looks, rx_bytes=np.append(0, np.cumsum(arrived)))


def stored(folder: Path, *, traced: bool = False) -> Path:
    """The session on disk, with an op trace of the second step."""
    made = session()
    path = folder / "job.stepscope"
    if not traced:
        return recorded.write(made, path).path
    capture = CaptureInfo(id="1", outcome="done", files=("optraces/ops-001",), at_ns=STEP)
    made = replace(made, manifest=msgspec.structs.replace(made.manifest, captures=(capture,)))
    recorded.write(made, path)
    add_trace(path, made.workers[0].info.key)
    return path


def add_trace(path: Path, worker: str, name: str = "ops-001") -> None:
    """An op trace with a thread and a stream."""
    maker = Maker()
    maker.step(0, 20_000, 1)
    for number in range(50):
        maker.op(maker.main, OP, 100 + number * 200, 120)
    device = maker.device()
    stream = maker.stream(device)
    for number in range(50):
        maker.launch(maker.main, stream, "sgemm", 10_100 + number * 100, 10_130 + number * 100, 40)
    optrace.write(path, name, maker.builder.build().shifted(STEP), worker=worker)
