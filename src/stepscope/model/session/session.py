"""A session in memory: the result of the store's reader, and the input of derive, detectors and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar, cast

import msgspec
import numpy as np
from msgspec import Struct, field

from stepscope.model.event import Event
from stepscope.model.log.events import AnyEvent
from stepscope.model.log.graph import GraphTable
from stepscope.model.session.experiment import Experiment
from stepscope.model.session.member import MemberInfo
from stepscope.model.session.merged import MergedMember
from stepscope.model.session.replays import Replays
from stepscope.tables.address_space import MemoryLook
from stepscope.tables.allocator_info import AllocatorInfo
from stepscope.tables.findings import Diagnostic
from stepscope.tables.hang import Hang
from stepscope.tables.layout import EVENTS, RECORDS
from stepscope.tables.nearby import ModelWeights, NotebookCell
from stepscope.tables.network_tables import ClockProbeTable, PacketTable, TcpTable
from stepscope.tables.optrace import OpTrace, TraceSource
from stepscope.tables.page_walks import PageWalks
from stepscope.tables.records import (
    BurstTable,
    CoreTable,
    DiskTable,
    Gaps,
    GpuTable,
    HostTable,
    LinkTable,
    Losses,
    MemoryEventTable,
    MemoryTable,
    ProcessTable,
    RecordTable,
    RivalTable,
    ThreadTable,
)
from stepscope.tables.stacks import StackProfile
from stepscope.tables.system_calls import SystemCalls

CELL = "cell"
"""Origin of a session of one cell of a notebook (``%%stepscope``). Its process outlives it."""
ASKED = frozenset({"run", CELL})
"""Origins whose user asked for a diagnosis: what it needs is captured without a further request."""
SCHEMA_VERSION = 1
"""Version of the session on disk (docs/decisions/0001). A reader opens every older version."""

E = TypeVar("E", bound=Event)
T = TypeVar("T")


class HostInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of the run."""

    name: str = ""
    kernel: str = ""
    machine: str = ""
    cpu: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    boot_id: str = ""
    time_namespace: str = ""
    """Time namespace of the collector, with ``boot_id`` the clock domain: ``model.session.clock_domain``. Since 0.1."""
    gpus: int = 0
    """Number of NVIDIA devices shown by the kernel's driver."""
    gpu_problem: str = ""
    """Reason why they could not be sampled; empty if they were, or if there are none."""


class JobOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Whose job it is, and of what. Since 0.1."""

    user: str = ""
    team: str = ""
    """STEPSCOPE_TEAM, else the account of the SLURM job, else the user's group if others may share it."""
    project: str = ""
    """Name of the top folder of the job's git repository, else of its working directory."""
    commit: str = ""
    """The repository's commit when the job began; "": there is none, or git is not installed."""


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
    damaged_records: int = 0
    """Those of ``lost_records`` whose bytes in the ring were not those that the agent sealed. Since 0.1."""
    lost_lines: int = 0
    clean_exit: bool = False
    signal: int | None = None
    """Number of the signal that ended it; 0: it ended by itself, with any code; None: it ran on, or nothing says. Since
    0.1."""
    allocator: AllocatorInfo | None = None
    """Allocator of the process; None if it could not be examined."""
    member: MemberInfo | None = None
    """Task of a cluster that it is; None if it is none. Since 0.1."""


class CaptureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A capture of the session: the request, the result, and its cost to the job. Since 0.1."""

    id: str
    kind: str = "ops"
    way: str = ""
    """Method as in ``model.log.events.CaptureTaken``; "" if no process was asked."""
    outcome: str = ""
    """Outcome: done | refused | gave-way | failed | discarded: the condition of ``when`` did not hold in it"""
    when: str = ""
    """Condition under which it was to be kept (``trace --when``); "": none."""
    caught: str = ""
    """What happened in it, if that was a condition."""
    text: str = ""
    """Reason, or a remark about a finished capture."""
    asked_by: str = ""
    """Requester: user | schedule | first-look (the job itself, once its steps were steady, or the sidecar instead of a
    look at other steps) | compute (computing steps, without a request) | the code of a detector"""
    request: str = ""
    """Id of the request that it was made for."""
    worker: str = ""
    """Key of the process."""
    title: str = ""
    """Description of its steps: "Keras fit", "Session.run train_op" ..."""
    work: str = ""
    """Work: training | evaluation | prediction; "" if unknown."""
    place: str = ""
    """Place FILE:LINE that calls the steps, if known."""
    anchors: tuple[tuple[int, int], ...] = ()
    """Pairs (kind, name) of the records whose ends are the ends of its steps."""
    at_ns: int = 0
    recorded_ns: int = 0
    unix_ns: int = 0
    """Wall clock at ``at_ns``: the clock of TensorFlow's profiler."""
    steps: int = 0
    """Number of whole steps in it."""
    files: tuple[str, ...] = ()
    """Paths below ``captures/``."""
    bytes: int = 0
    """Size of the framework's output."""
    ratio: float | None = None
    """Traced steps over untraced neighbours, minus one; None: too few of either."""
    low: float | None = None
    high: float | None = None
    traced: int = 0
    neighbours: int = 0
    step_ns: int = 0
    """Median untraced neighbour."""
    slower_ns: int = 0
    """Additional time of all traced steps together."""
    export_ns: int = 0
    """Wall time of stopping and writing, concurrent with the job."""
    export_delay_ns: int = 0
    """Additional time of steps meanwhile, all together."""
    cpu_ns: int = 0
    """CPU time of the job's thread that started, stopped and wrote."""
    read_cpu_ns: int = 0
    """CPU time of the sidecar for reading it."""
    cost_ns: int = 0
    """Cost to the job: slower steps, and CPU time to write and to read."""
    joint: str = ""
    """Id that it shares with the captures of the job's other tasks at the same time; "": it is of one task."""
    leads: bool = False
    """Flag: its task was asked for the joint capture, and asked the others."""
    ends_ns: tuple[int, ...] = ()
    """Of a joint capture: begin of its first step, and end of each."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``manifest.json``. Times are nanoseconds since session start; ``origin_monotonic_ns`` is that
    start.
    """

    schema_version: int = SCHEMA_VERSION
    stepscope_version: str = ""
    id: str = ""
    name: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    started_unix_ns: int = 0
    origin_monotonic_ns: int = 0
    ended_ns: int = 0
    """End of the job; of a recovered run whose end was not observed: its newest record or sample."""
    exit_code: int | None = None
    """Exit code of the job, negative for a signal; None while it runs or if its end was not observed."""
    memory_kill_counters: dict[str, int] = {}
    """Counters of processes killed for lack of memory when the session began, by file: of the control group and of the
    host. Since 0.1."""
    memory_killed: bool = False
    """Flag: the kernel killed a process of the job for lack of memory, or one of which nothing says whose it was. Since
    0.1."""
    memory_killed_by: Literal["", "log", "group", "host"] = ""
    """What says so: the kernel's log, which names a process of the job; the counter of the job's control group, or the
    host's where the group has none, just before the end. "": an older session, by any counter. Since 0.1."""
    mode: str = "run"
    """Origin: run | enable | attach | cell (since 0.1) | import | merge"""
    state: str = "running"
    """State: running | finished | recovered"""
    job_pid: int = 0
    budget: str = ""
    """Value of ``run --budget``: the bound for the cost of captures."""
    applied: tuple[str, ...] = ()
    """Remedies that ``run --apply`` gave the job's environment."""
    run_dir: str = ""
    sidecar_starts: int = 1
    host: HostInfo = HostInfo()
    origin: JobOrigin = JobOrigin()
    """Whose job it is. Since 0.1."""
    workers: tuple[WorkerInfo, ...] = ()
    signals: tuple[str, ...] = ()
    """Recorded signals: names of ``detectors.base.Signal`` in lower case, with hyphens."""
    diagnostics: tuple[Diagnostic, ...] = ()
    captures: tuple[CaptureInfo, ...] = ()
    members: tuple[MergedMember, ...] = ()
    """Member sessions of a joint session. Since 0.1."""
    joined_by: str = ""
    """Who made a joint session: user | run | enable (the collector of the member that ended last). Since 0.1."""
    joint: str = ""
    """Path of the joint session that the members on this host get when the last of them has ended. Since 0.1."""
    hangs: tuple[Hang, ...] = ()
    """Times in which the job did nothing, as they were recognised while they lasted, oldest first. Since 0.1."""
    cells: tuple[NotebookCell, ...] = ()
    """Cells of notebooks near the job, if one of them ran. Since 0.1."""
    models: tuple[ModelWeights, ...] = ()
    """Files of models near the job that it loaded. Since 0.1."""


class Worker(Struct, frozen=True, kw_only=True, dict=True):
    """One measured process: its records and events; ``get`` keeps what is derived from them."""

    info: WorkerInfo
    records: RecordTable
    """What was observed. Within ``gaps`` these are only records of kinds that are recorded there as everywhere."""
    gaps: Gaps = field(default_factory=Gaps.empty)
    """When hot wrappers were detached, and the calls that were counted meanwhile."""
    in_gaps: RecordTable = field(default_factory=RecordTable.empty)
    """Records within gaps of all other kinds. Steps were not recorded there, so nothing may be divided by them."""
    lost: Losses = field(default_factory=Losses.empty)
    """When records were lost, and how many."""
    events: Sequence[AnyEvent] = ()
    graphs: GraphTable = field(default_factory=GraphTable)
    """Nodes of the graphs that it made, if they were read."""

    def all(self, kind: type[E]) -> list[E]:
        """The events of one type, in the order written."""
        return cast("list[E]", [*self.get(_by_type).get(kind, ())])

    def get(self, derived: Callable[[Worker], T]) -> T:
        """What a function finds in this process; it runs once."""
        key = f"{derived.__module__}.{derived.__qualname__}"
        if key not in self.__dict__:
            self.__dict__[key] = derived(self)
        return cast("T", self.__dict__[key])

    def with_gaps(self) -> RecordTable:
        """All records, those of ``in_gaps`` included, sorted as ``records`` are."""
        if not len(self.in_gaps):
            return self.records
        both = RecordTable.concat([self.records, self.in_gaps])
        return both.take(np.lexsort((both.seq, -both.dur_ns, both.start_ns)))


def _by_type(worker: Worker) -> dict[type, list[AnyEvent]]:
    found: dict[type, list[AnyEvent]] = {}
    for event in worker.events:
        found.setdefault(type(event), []).append(event)
    return found


class StoredOpTrace(Struct, frozen=True, kw_only=True):
    """An op trace of the session, read on request. Since 0.1."""

    name: str
    """Name of its folder: "ops-001" for the capture of that number."""
    worker: str
    """Key of its process; empty if the process was not measured."""
    source: TraceSource
    load: Callable[[], OpTrace]
    """Function that reads it. Raises SessionError: it is damaged."""


class StoredMember(Struct, frozen=True, kw_only=True):
    """A member session of a joint one, read on request. Since 0.1."""

    folder: str
    name: str
    load: Callable[[], Session]
    """Function that reads it. Raises SessionError: it is damaged."""


class Peers(Struct, frozen=True, kw_only=True):
    """What is known of the job's other hosts and members."""

    clock_probes: ClockProbeTable = field(default_factory=ClockProbeTable.empty)
    tcp: TcpTable = field(default_factory=TcpTable.empty)
    packets: PacketTable = field(default_factory=PacketTable.empty)
    members: Sequence[StoredMember] = ()
    """Member sessions of a joint session (``stepscope merge``)."""


class Session(Struct, frozen=True, kw_only=True):
    """All captured data, read-only."""

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
    """Interfaces, disks, GPUs, hosts and connections that ``name`` of those tables indexes."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Text by absolute path of user files that a record names."""
    stacks: Sequence[StackProfile] = ()
    """Captured stacks, a profile for each event and window."""
    op_traces: Sequence[StoredOpTrace] = ()
    """Captured or imported op traces, by name."""
    memory_looks: Sequence[MemoryLook] = ()
    """Looks at address spaces, by process and time."""
    system_calls: Sequence[SystemCalls] = ()
    """Windows in which they were counted, by number."""
    replays: Replays | None = None
    """Ops of the step, measured alone after the job; None if that was not done."""
    experiment: Experiment | None = None
    """What an experiment on this run has shown; None if there was none."""
    page_walks: PageWalks | None = None
    """What translating addresses costs on the job's machine; None if it is not known."""
    peers: Peers = field(default_factory=Peers)
    lost_files: Sequence[str] = ()
    """Files of the session that cannot be read; the manifest's diagnostics say why."""


def records_lost(session: Session) -> bool:
    """Whether records or events of a process are among what cannot be read."""
    return any(name.rpartition("/")[2].startswith((f"{RECORDS}-", f"{EVENTS}-")) for name in session.lost_files)
