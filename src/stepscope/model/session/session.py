"""A session in memory: what the store reads, and what derive, detectors and reports are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import numpy as np

from stepscope.model.event import Event
from stepscope.model.log.events import AnyEvent
from stepscope.model.log.graph import GraphTable
from stepscope.model.records import (
    BurstTable,
    CoreTable,
    DiskTable,
    Gaps,
    GpuTable,
    HostTable,
    LinkTable,
    MemoryEventTable,
    MemoryTable,
    ProcessTable,
    RecordTable,
    RivalTable,
    ThreadTable,
)
from stepscope.model.report.finding import Diagnostic
from stepscope.model.session.address_space import MemoryLook
from stepscope.model.session.optrace import OpTrace, TraceSource
from stepscope.model.session.stacks import StackProfile

SCHEMA_VERSION = 1
"""Version of the session on disk (docs/decisions/0001). A reader opens every older version."""

E = TypeVar("E", bound=Event)


class HostInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where it ran."""

    name: str = ""
    kernel: str = ""
    machine: str = ""
    cpu: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    boot_id: str = ""
    gpus: int = 0
    """NVIDIA devices that the kernel's driver shows."""
    gpu_problem: str = ""
    """Why they could not be sampled; empty when they were, and when there are none."""


class AllocatorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The malloc that serves a process, as its dynamic linker found it."""

    name: str
    """glibc | jemalloc | tcmalloc | mimalloc | tbbmalloc | musl | other | unknown"""
    how: str
    """default: the C library's own; preloaded; linked; static: in the program itself; unknown"""
    library: str = ""
    """The file."""
    settings: dict[str, str] = {}
    """Variables of the environment that set it up, or TensorFlow's pools, as the process was started."""
    pool: str = ""
    """What serves TensorFlow's tensors before malloc is asked: oneDNN; none: nothing does; "" not known, or there is no
    TensorFlow. Of a process with the agent the ``framework`` line's ``detail`` says it from inside."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One measured process. ``key`` names its folder below ``workers/``."""

    key: str
    pid: int
    ppid: int = 0
    command: tuple[str, ...] = ()
    frameworks: dict[str, str] = {}
    started_ns: int = 0
    ended_ns: int = 0
    lost_records: int = 0
    lost_lines: int = 0
    clean_exit: bool = False
    allocator: AllocatorInfo | None = None
    """None where nobody could look."""


class CaptureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A capture of the session: what was asked, what came of it, what it cost the job. Since 0.1."""

    id: str
    kind: str = "ops"
    way: str = ""
    """As ``model.log.events.CaptureTaken``; "" where no process was asked."""
    outcome: str = ""
    """done | refused | gave-way | failed"""
    text: str = ""
    """Why, or what is to be known of one that is done."""
    asked_by: str = ""
    """user | schedule | compute (steps that do, where nobody asked) | the code of a detector"""
    request: str = ""
    """Id of the request that it was made for."""
    worker: str = ""
    """Key of the process."""
    title: str = ""
    """What its steps are: "Keras fit", "Session.run train_op" ..."""
    work: str = ""
    """training | evaluation | prediction; "" where that is not known."""
    place: str = ""
    """FILE:LINE that calls the steps, where that is known."""
    anchors: tuple[tuple[int, int], ...] = ()
    """(kind, name) of the records whose ends are the ends of its steps."""
    at_ns: int = 0
    recorded_ns: int = 0
    unix_ns: int = 0
    """Wall clock at ``at_ns``: the clock of what TensorFlow's profiler writes."""
    steps: int = 0
    """Whole steps in it."""
    files: tuple[str, ...] = ()
    """Below ``captures/``."""
    bytes: int = 0
    """Of what the framework wrote."""
    ratio: float | None = None
    """Traced steps against untraced neighbours, less one; None: too few of either."""
    low: float | None = None
    high: float | None = None
    traced: int = 0
    neighbours: int = 0
    step_ns: int = 0
    """Median untraced neighbour."""
    slower_ns: int = 0
    """What the traced steps took longer, all together."""
    export_ns: int = 0
    """Wall time of stopping and writing, beside the job."""
    export_delay_ns: int = 0
    """What steps took longer meanwhile, all together."""
    cpu_ns: int = 0
    """CPU time of the job's thread that started, stopped and wrote."""
    read_cpu_ns: int = 0
    """CPU time of the sidecar to read it."""
    cost_ns: int = 0
    """What it cost the job: slower steps, and CPU time to write and to read."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``manifest.json``. Times are nanoseconds since session start; ``origin_monotonic_ns`` is that start."""

    schema_version: int = SCHEMA_VERSION
    stepscope_version: str = ""
    id: str = ""
    name: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    started_unix_ns: int = 0
    origin_monotonic_ns: int = 0
    ended_ns: int = 0
    exit_code: int | None = None
    """The job's exit code, negative for a signal; None while it runs or when nobody saw it end."""
    mode: str = "run"
    """How it came to be: run | enable | attach | import"""
    state: str = "running"
    """running | finished | recovered"""
    job_pid: int = 0
    budget: str = ""
    """``run --budget`` as it was given: what captures may cost."""
    applied: tuple[str, ...] = ()
    """Remedies that ``run --apply`` gave the job's environment."""
    run_dir: str = ""
    sidecar_starts: int = 1
    host: HostInfo = HostInfo()
    workers: tuple[WorkerInfo, ...] = ()
    signals: tuple[str, ...] = ()
    """Signals that were recorded: names of ``detectors.base.Signal`` in small letters, with hyphens."""
    diagnostics: tuple[Diagnostic, ...] = ()
    captures: tuple[CaptureInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One measured process: its records and events."""

    info: WorkerInfo
    records: RecordTable
    """What was observed. Within ``gaps`` these are only records of kinds that are recorded there as everywhere."""
    gaps: Gaps = field(default_factory=Gaps.empty)
    """When hot wrappers were detached, and the calls that were counted meanwhile."""
    in_gaps: RecordTable = field(default_factory=RecordTable.empty)
    """Records within gaps of all other kinds. Steps were not recorded there, so nothing may be divided by them."""
    events: Sequence[AnyEvent] = ()
    graphs: GraphTable = field(default_factory=GraphTable)
    """Nodes of the graphs that it made, as far as they were read."""

    def all(self, kind: type[E]) -> list[E]:
        """The events of one type, in the order written."""
        return [e for e in self.events if isinstance(e, kind)]

    def with_gaps(self) -> RecordTable:
        """All records, those of ``in_gaps`` included, sorted as ``records`` are."""
        if not len(self.in_gaps):
            return self.records
        both = RecordTable.concat([self.records, self.in_gaps])
        return both.take(np.lexsort((both.seq, -both.dur_ns, both.start_ns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOpTrace:
    """An op trace of the session, read when it is asked for. Since 0.1."""

    name: str
    """Of its folder: "ops-001" for the capture of that number."""
    worker: str
    """Key of the process that it is of; empty: of none that was measured."""
    source: TraceSource
    load: Callable[[], OpTrace]
    """Reads it. Raises SessionError: it is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that was captured, read-only."""

    manifest: Manifest
    workers: Sequence[Worker] = ()
    process: ProcessTable = field(default_factory=ProcessTable.empty)
    threads: ThreadTable = field(default_factory=ThreadTable.empty)
    host: HostTable = field(default_factory=HostTable.empty)
    rivals: RivalTable = field(default_factory=RivalTable.empty)
    rival_names: Sequence[str] = ()
    cores: CoreTable = field(default_factory=CoreTable.empty)
    links: LinkTable = field(default_factory=LinkTable.empty)
    disks: DiskTable = field(default_factory=DiskTable.empty)
    memory: MemoryTable = field(default_factory=MemoryTable.empty)
    gpus: GpuTable = field(default_factory=GpuTable.empty)
    bursts: BurstTable = field(default_factory=BurstTable.empty)
    memory_events: MemoryEventTable = field(default_factory=MemoryEventTable.empty)
    resource_names: Sequence[str] = ()
    """Interfaces, disks and GPUs that ``name`` of those tables counts through."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Absolute path to text of user files that a record names."""
    stacks: Sequence[StackProfile] = ()
    """Captured stacks, a profile for each event and window."""
    op_traces: Sequence[StoredOpTrace] = ()
    """Captured or imported op traces, by name."""
    memory_looks: Sequence[MemoryLook] = ()
    """Looks at address spaces, by process and time."""
    lost_files: Sequence[str] = ()
    """Files of the session that cannot be read; the manifest's diagnostics say why."""
