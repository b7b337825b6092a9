"""A session on disk of which every number is known: Keras fit whose callback takes a third of each step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace
from tests.derive.memory_looks import look, padded
from tests.derive.op_traces import Maker
from tests.derive.sessions import CWD, MS, SCRIPT, US, Job, node
from tests.derive.sessions import Frame as Line
from tests.derive.stack_profiles import of_samples
from tests.derive.stored import stored

from stepscope._version import __version__
from stepscope.diagnosis import analyze
from stepscope.model.session.session import Manifest
from stepscope.store import memory_looks, optrace, stacks
from stepscope.store.writer import EventRow, LogPosition, SessionWriter
from stepscope.tables import layout
from stepscope.tables.layout import key_of
from stepscope.tables.stacks import Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.model.session.session import Session
    from stepscope.tables.address_space import MemoryLook
    from stepscope.tables.stacks import StackProfile

STEPS = 300
TRACED = 6
STEP_NS = 20 * MS
PROGRAM = "\n".join(f"line_{number} = {number}" for number in range(1, 81)) + "\n"


@dataclass(frozen=True)
class Recorded:
    """A session at rest."""

    path: Path

    @property
    def key(self) -> str:
        """Its key."""
        return key_of(self.path.resolve())

    @property
    def url(self) -> str:
        """Its address."""
        return f"/api/v1/sessions/{self.key}"


def fit(*, callback_ms: int = 7, draws_every: int = 1) -> Session:
    """Steps of 20 ms: 10 ms compute, 7 ms in a callback, the rest in the user's loop.

    Every third step has a sample; ``draws_every`` of these is one of ``draw``, the others of its caller alone.
    """
    job = Job(ended_ns=STEPS * STEP_NS)
    job.framework()
    job.sources[SCRIPT] = PROGRAM
    job.loop().at(0, STEPS * STEP_NS)
    job.execution().every(STEP_NS, STEPS, dur=10 * MS)
    job.callback("Plot.on_train_batch_end").every(STEP_NS, STEPS, dur=callback_ms * MS, start=11 * MS)
    for number, at_ns in enumerate(range(13 * MS, STEPS * STEP_NS, 3 * STEP_NS)):
        drawing = [] if number % draws_every else [Line(SCRIPT, "draw", 33)]
        job.samples([at_ns], Line(SCRIPT, "main", 50), *drawing)
    job.machine(6, cpus=2, got=1.0)
    return job.session()


def fed() -> Session:
    """Steps of 80 ms that wait 60 ms of it for a map of a very long name."""
    job = Job(ended_ns=100 * 80 * MS)
    job.framework()
    calls = ("range(320)", "map(load)", "batch(32)", "prefetch(2)")
    job.sources[SCRIPT] = PROGRAM
    for line, call in enumerate(calls, 60):
        job.sources[SCRIPT] = job.sources[SCRIPT].replace(f"line_{line} = {line}", f"rows = rows.{call}")
    source = job.dataset("RangeDataset", line=60)
    own = {"fn_name": "load_" + "and_decode_" * 20, "fn_file": SCRIPT, "fn_line": 10, "fn_end_line": 11}
    made = job.dataset("BatchDataset", job.dataset("MapDataset", source, line=61, **own), line=62, batch=32)
    made = job.dataset("PrefetchDataset", made, line=63)
    iterator = job.iterator(made, batch=32)
    job.function().every(80 * MS, 100, dur=20 * MS, start=60 * MS)
    job.nexts().every(80 * MS, 100, dur=60 * MS, arg=iterator)
    stages = (("Prefetch", 1, 10 * US), ("BatchV2", 1, 100 * US), ("Map", 32, 60 * MS), ("Range", 32, 1 * US))
    job.model(
        iterator,
        90 * 80 * MS,
        [
            node(at, name, *([at + 1] if at < len(stages) else []), elements=90 * each, busy=90 * busy)
            for at, (name, each, busy) in enumerate(stages, 1)
        ],
    )
    return job.session()


def lying(folder: Path, mode: str) -> Path:
    """A session of no worker that lies in ``folder``; imported ones hold a trace of some steps of 10 ms."""
    path = folder / f"{mode}.stepscope"
    path.mkdir()
    if mode == "import":
        trace = Maker()
        thread = trace.thread("tf_Compute/1")
        for number in range(TRACED):
            trace.step(10_000 * number, 9_990, number)
            trace.op(thread, "model/MatMul:MatMul", 10_000 * number + 5, 8_000, number)
        optrace.write(path, "import-001", trace.trace())
    manifest = Manifest(id="x", mode=mode, state="finished", stepscope_version=__version__, ended_ns=60_000_000)
    (path / layout.MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return path


def native() -> StackProfile:
    """Native stacks: two thirds in oneDNN, a fifth ends in code without a name, the rest in malloc."""
    start, main = Frame("_start", module="python3"), Frame("main", module="python3", kind=FrameKind.INTERPRETER)
    matmul = Frame("dnnl::matmul", module="libtensorflow_cc.so", kind=FrameKind.MATH)
    nameless = Frame("[libz.so.1]", module="libz.so.1", kind=FrameKind.NATIVE, resolved=False)
    malloc = Frame("malloc", module="libc.so.6", kind=FrameKind.ALLOCATOR)
    leaves = [matmul] * 10 + [nameless] * 3 + [malloc] * 2
    samples = [
        (at, (start, main, leaves[i % len(leaves)])) for i, at in enumerate(range(100 * MS, 5_000 * MS, 10 * MS))
    ]
    return replace(of_samples(samples), begin_ns=100 * MS, end_ns=5_000 * MS)


def looks() -> list[MemoryLook]:
    """Two looks at mappings that lie on boundaries of huge pages, more of them at the second."""
    return [replace(look(padded(count), at_s=at_s), pid=100) for at_s, count in ((2.0, 6), (5.0, 9))]


def write(
    session: Session, path: Path, *, profiles: Sequence[StackProfile] = (), looked: Sequence[MemoryLook] = ()
) -> Recorded:
    """Store a session of one worker as the sidecar does, with its reports."""
    path.mkdir()
    for number, profile in enumerate(profiles):
        stacks.write(path, f"{profile.event}-{number:04d}", profile)
    for number, one in enumerate(looked):
        memory_looks.write(path, f"{one.pid}-{number:04d}", one)
    writer = SessionWriter(path)
    worker = session.workers[0]
    records = stored(worker)
    writer.write_records(worker.info.key, replace(records, seq=records.seq + 1))
    rows = [EventRow(event.at, "", msgspec.json.encode(event)) for event in worker.events]
    writer.write_events(worker.info.key, rows, LogPosition(1, 1))
    for name in ("host", "process", "links", "disks", "bursts"):
        writer.write_table(name, getattr(session, name))
    writer.write_resource_names(0, session.resource_names)
    files = {path: f"{number:03d}.py" for number, path in enumerate(session.sources)}
    for path_of, name in files.items():
        writer.write_source(name, session.sources[path_of].encode())
    index = {"files": [{"path": path_of, "file": name} for path_of, name in files.items()]}
    writer.write_source("index.json", json.dumps(index).encode())
    writer.write_manifest(
        msgspec.structs.replace(
            session.manifest,
            stepscope_version=__version__,
            cwd=CWD,
            state="finished",
            started_unix_ns=1_760_000_000_000_000_000,
            workers=(worker.info,),
        )
    )
    analyze.write_reports(path)
    return Recorded(path)
