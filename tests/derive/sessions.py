"""Builds sessions in memory, record by record: the test chooses the truth, and what is derived must equal it.

A ``Job`` is one process of one main thread. What can be recorded has a name (a ``Call``); a call is placed in time
with ``at`` or ``every``. Records nest by time, as they do in a real session. Times are nanoseconds.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from tests.derive import model_proto
from tests.derive.stored import read

from stepscope.derive.steps import step_finder
from stepscope.derive.steps.steps import Steps
from stepscope.derive.view import SessionView
from stepscope.model.log.events import (
    AnyEvent,
    BatchSeen,
    ChildStarted,
    Code,
    DatasetMade,
    Framework,
    IteratorMade,
    IteratorModel,
    ModelBuilt,
    Name,
    ProcessStarted,
    PyFunctionMade,
    Stack,
    ThreadSeen,
    Traced,
)
from stepscope.model.log.graph import GraphTable
from stepscope.model.session.session import HostInfo, Manifest, Session, Worker, WorkerInfo
from stepscope.readers.iterator_model import Node
from stepscope.tables.allocator_info import AllocatorInfo
from stepscope.tables.nearby import ModelWeights
from stepscope.tables.records import HostTable, ProcessTable, RecordTable, RivalTable, Table, ThreadTable
from stepscope.wire.kinds import Flag, Kind

T = TypeVar("T", bound=Table)

US, MS, S = 1_000, 1_000_000, 1_000_000_000
MAIN, POOL = 1, 2
"""The thread that makes the steps, and one of tf.data's."""
CWD, SCRIPT = "/job", "/job/train.py"


class Frame(NamedTuple):
    """A line on a stack."""

    file: str
    function: str
    line: int
    own: bool = True


class _Record(NamedTuple):
    start_ns: int
    dur_ns: int
    arg: int
    name: int
    kind: int
    flags: int
    thread: int


@dataclass(frozen=True)
class Call:
    """Something of one name that can be recorded."""

    job: Job
    kind: Kind
    name: Name

    def at(self, start: int, dur: int, *, arg: int = 0, flags: int = 0, thread: int = MAIN) -> Call:
        """Record one call."""
        self.job.records.append(_Record(start, dur, arg, self.name.id, self.kind, flags, thread))
        return self

    def every(
        self, period: int, times: int, *, dur: int, start: int = 0, arg: int = 0, flags: int = 0, thread: int = MAIN
    ) -> Call:
        """Record ``times`` calls, one each ``period``."""
        for i in range(times):
            self.at(start + i * period, dur, arg=arg, flags=flags, thread=thread)
        return self

    def counted(self, at: int, *, calls: int, total: int, thread: int = MAIN) -> Call:
        """Record that calls were too short to be recorded one by one."""
        flags = int(self.kind) << 8
        self.job.records.append(_Record(at, total, calls, self.name.id, Kind.COUNTS, flags, thread))
        return self


@dataclass
class Job:
    """A session that is being written."""

    pid: int = 100
    command: tuple[str, ...] = ()
    exit_code: int | None = 0
    memory_killed: bool = False
    memory_killed_by: Literal["", "log", "group", "host"] = "log"
    ended_ns: int = 0
    mode: str = "run"
    records: list[_Record] = field(default_factory=list)
    events: list[AnyEvent] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    hosts: HostTable = field(default_factory=HostTable.empty)
    processes: ProcessTable = field(default_factory=ProcessTable.empty)
    threads: ThreadTable = field(default_factory=ThreadTable.empty)
    rivals: list[dict[str, int]] = field(default_factory=list)
    rival_names: list[str] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)  # tables of network, disks, GPUs and their names
    host: HostInfo = field(default_factory=HostInfo)
    allocator: AllocatorInfo | None = None
    graphs: GraphTable = field(default_factory=GraphTable)
    models: tuple[ModelWeights, ...] = ()
    look: int = 0  # id of the wait line of the stacks that are sampled now
    _ids: dict[str, int] = field(default_factory=dict)
    _codes: dict[tuple[str, str], int] = field(default_factory=dict)
    _stacks: dict[tuple[int, tuple[Frame, ...]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events += [ProcessStarted(pid=self.pid, ppid=1), ThreadSeen(id=MAIN, main=True), ThreadSeen(id=POOL)]

    def new_id(self, what: str) -> int:
        """1, 2, 3 ... per ``what``."""
        self._ids[what] = self._ids.get(what, 0) + 1
        return self._ids[what]

    def event(self, *events: AnyEvent) -> None:
        """Write lines of the log."""
        self.events += events

    def call(self, kind: Kind, text: str, **fields: Any) -> Call:
        """Something that can be recorded, by the fields of its name line."""
        name = Name(id=self.new_id("name"), text=text, **fields)
        self.event(name)
        return Call(self, kind, name)

    def step(self) -> Call:
        """``stepscope.step()``."""
        return self.call(Kind.STEP, "step")

    def function(self, text: str = "train_step", *, file: str = SCRIPT, line: int = 10, **fields: Any) -> Call:
        """A tf.function."""
        return self.call(Kind.FUNCTION, text, file=file, line=line, **fields)

    def execution(self, role: str = "train") -> Call:
        """Keras' compiled function."""
        return self.call(Kind.EXECUTION, f"{role}_function", role=role)

    def loop(self, role: str = "fit", *, line: int = 50) -> Call:
        """One of Keras' loops, called by the user's ``main``."""
        return self.call(Kind.LOOP, role, role=role, call_file=SCRIPT, call_line=line, call_function="main")

    def callback(self, text: str, *, line: int = 30, own: bool = True) -> Call:
        """One hook of a callback: "Class.on_hook"."""
        place: dict[str, Any] = {"file": SCRIPT, "line": line, "end_line": line + 4} if own else {}
        return self.call(Kind.CALLBACK, text, hook=text.rpartition(".")[2], own=own, **place)

    def save(self, role: str = "checkpoint", *, line: int = 60) -> Call:
        """Checkpoint, weights or model."""
        return self.call(Kind.SAVE, role, role=role, call_file=SCRIPT, call_line=line, call_function="main")

    def python(self, role: str, text: str, *, line: int = 15, stack: Sequence[tuple[str, str, int]] = ()) -> Call:
        """User Python in the pipeline."""
        made = self.call(Kind.PYFUNC, text, role=role, file=SCRIPT, line=line, end_line=line + 3, own=True)
        if stack:
            self.event(PyFunctionMade(name=made.name.id, role=role, stack=list(stack)))
        return made

    def nexts(self) -> Call:
        """Python's ``next`` on an iterator; ``arg`` of its records is the iterator."""
        return self.call(Kind.NEXT, "next")

    def gap(self, start: int, dur: int, calls: int, kind: Kind = Kind.EXECUTION) -> None:
        """A time in which hot wrappers were detached."""
        self.records.append(_Record(start, dur, calls, 0, Kind.REST, int(kind) << 8, POOL))

    def trace(self, at: int, dur: int, *, thread: int = MAIN, **fields: Any) -> Traced:
        """One tracing: its event and its record."""
        about: dict[str, Any] = {"function": "train_step", "function_key": 1, "file": SCRIPT, "line": 10, **fields}
        about = {"owner": "user", "definition_key": f"{about['file']}:{about['line']}", **about}
        traced = Traced(at=at, id=self.new_id("trace"), dur=dur, **about)
        self.event(traced)
        self.records.append(_Record(at, dur, traced.id, 0, Kind.TRACE, 0, thread))
        return traced

    def dataset(self, cls: str, *inputs: DatasetMade, line: int = 0, **fields: Any) -> DatasetMade:
        """A transformation, made at a line of the script."""
        made = DatasetMade(
            id=self.new_id("dataset"),
            cls=cls,
            inputs=[i.id for i in inputs],
            file=SCRIPT if line else "",
            line=line,
            function="make_dataset" if line else "",
            **fields,
        )
        self.event(made)
        return made

    def iterator(self, dataset: DatasetMade | None = None, *, batch: int = 0, at: int = 0) -> int:
        """An iterator, by its id."""
        made = IteratorMade(at=at, id=self.new_id("iterator"), dataset=dataset.id if dataset else 0, batch=batch)
        self.event(made)
        return made.id

    def model(self, iterator: int, at: int, nodes: Sequence[Node], gaps_us: Sequence[int] = ()) -> None:
        """A read of tf.data's live model; the first node is the output."""
        raw = model_proto.model(nodes, nodes[0].id, gaps_us)
        self.event(IteratorModel(at=at, iterator=iterator, proto=base64.b64encode(raw).decode()))

    def batch(self, loop: int, *, role: str = "train", size: int = 0, samples: int = 0, steps: int = 0) -> None:
        """What a Keras loop knows about its batches."""
        self.event(BatchSeen(loop=loop, role=role, size=size, samples=samples, steps=steps))

    def stack(self, *frames: Frame) -> int:
        """The id of a stack, root to leaf."""
        if (self.look, frames) not in self._stacks:
            for f in frames:
                if (f.file, f.function) not in self._codes:
                    code = self._codes[f.file, f.function] = self.new_id("code")
                    self.event(Code(id=code, file=f.file, function=f.function, own=f.own))
            number = self._stacks[self.look, frames] = self.new_id("stack")
            self.event(Stack(id=number, wait=self.look, frames=[(self._codes[f[:2]], f.line) for f in frames]))
        return self._stacks[self.look, frames]

    def samples(
        self, times: Iterable[int], *frames: Frame, dur: int = 50 * MS, thread: int = MAIN, flags: int = 0, arg: int = 0
    ) -> None:
        """Stack samples at these times, each for ``dur``."""
        self.records += [_Record(t, dur, arg, self.stack(*frames), Kind.SAMPLE, flags, thread) for t in times]

    def framework(self, name: str = "tensorflow", version: str = "2.21.0", *, at: int = 0, dur: int = 0) -> None:
        """A framework that the job imported, until ``at``."""
        self.event(Framework(at=at, name=name, version=version, dur=dur))

    def compiled(self, **fields: Any) -> None:
        """A Keras model was compiled."""
        self.event(ModelBuilt(**fields))

    def machine(
        self,
        seconds: int,
        *,
        cpus: int = 2,
        got: float = 1.0,
        waiting: float = 0.0,
        others: float = 0.0,
        steal: float = 0.0,
        quota: float | None = None,
        throttled: float = 0.0,
    ) -> None:
        """Samples of host and process, one a second, at constant rates.

        Args:
            seconds: how long, from the session's start.
            cpus: that the job may use.
            got: CPUs that the job's threads run on.
            waiting: threads of the job that are runnable and wait for a CPU.
            others: CPUs of other processes.
            steal: CPUs that the hypervisor gives to somebody else.
            quota: of the cgroup, in CPUs.
            throttled: share of the time that the cgroup was throttled.
        """
        at = np.arange(seconds + 1, dtype=np.int64) * S

        def total(rate: float) -> npt.NDArray[np.int64]:
            return np.asarray(np.rint(at * rate), np.int64)

        self.hosts = filled(
            HostTable,
            len(at),
            at_ns=at,
            cpus=total(0) + cpus,
            quota_milli_cpus=total(0) + (-1 if quota is None else round(1000 * quota)),
            job_cpu_ns=total(got),
            others_cpu_ns=total(others),
            steal_ns=total(steal),
            throttled_ns=total(throttled),
        )
        self.processes = filled(
            ProcessTable,
            len(at),
            at_ns=at,
            pid=total(0) + self.pid,
            cpu_user_ns=total(got),
            run_ns=total(got),
            wait_ns=total(waiting),
        )

    def thread_cpu(self, seconds: int, percent: Mapping[int, int]) -> None:
        """CPU of threads by id, sampled once a second at constant rates; their native ids are 1000 more."""
        at = np.arange(seconds + 1, dtype=np.int64) * S
        self.events += [ThreadSeen(id=t, main=t == MAIN, native=1000 + t) for t in percent]
        zero = at * 0
        self.threads = ThreadTable.concat(
            filled(
                ThreadTable, len(at), at_ns=at, pid=zero + self.pid, native=zero + 1000 + t, run_ns=at // 100 * share
            )
            for t, share in percent.items()
        )

    def rival(self, command: str, *, cores: float, seconds: int, pid: int = 900, **more: int) -> None:
        """Another process that uses CPU at a constant rate."""
        if command not in self.rival_names:
            self.rival_names.append(command)
        same = {"pid": pid, "name": self.rival_names.index(command), "child": 0, "runnable": -1}
        same |= {"cpu_ns": round(cores * S), "interval_ns": S, **more}
        self.rivals += [{"at_ns": second * S, **same} for second in range(1, seconds + 1)]

    def child(self, pid: int, command: str, *, line: int) -> None:
        """The job started another process."""
        self.event(ChildStarted(pid=pid, command=command, file=SCRIPT, line=line, function="main"))

    def table(self) -> RecordTable:
        """The records as a session stores them, sorted."""
        rows = sorted(self.records, key=lambda r: (r.start_ns, -r.dur_ns))
        columns = np.array(rows, np.int64).reshape(len(rows), len(_Record._fields))
        return RecordTable(**dict(zip(_Record._fields, columns.T, strict=True)), seq=np.arange(len(rows)))

    def worker(self) -> Worker:
        """The process."""
        info = WorkerInfo(key=str(self.pid), pid=self.pid, command=self.command, allocator=self.allocator)
        return read(info, self.table(), self.events, self.graphs)

    def session(self) -> Session:
        """The whole session."""
        rivals = RivalTable.empty()
        if self.rivals:
            rows = sorted(self.rivals, key=lambda r: r["at_ns"])
            rivals = RivalTable(**{key: np.array([r[key] for r in rows], np.int64) for key in rows[0]})
        return Session(
            manifest=Manifest(
                id="test",
                command=("python", "train.py"),
                cwd=CWD,
                job_pid=self.pid,
                mode=self.mode,
                exit_code=self.exit_code,
                memory_killed=self.memory_killed,
                memory_killed_by=self.memory_killed_by if self.memory_killed else "",
                ended_ns=self.ended_ns,
                host=self.host,
                models=self.models,
            ),
            workers=(self.worker(),),
            process=self.processes,
            host=self.hosts,
            threads=self.threads,
            rivals=rivals,
            rival_names=tuple(self.rival_names),
            **self.resources,
            sources=dict(self.sources),
        )

    def view(self) -> SessionView:
        """What detectors are given."""
        return SessionView(self.session())

    def steps(self) -> Steps:
        """The steps, which there must be."""
        found = step_finder.find([self.worker()])
        assert found is not None
        return found


def filled(table: type[T], rows: int, **columns: npt.NDArray[np.int64]) -> T:
    """A table whose other columns are zero."""
    zeros = {name: np.zeros(rows, np.int64) for name in table.__struct_fields__}
    return table(**{**zeros, **columns})


def node(
    number: int,
    name: str,
    *inputs: int,
    elements: int = 0,
    busy: int = 0,
    produced: int = 0,
    parameters: Mapping[str, float] | None = None,
) -> Node:
    """A stage of tf.data's live model. ``busy``: its self time so far; ``produced``: bytes that it gave."""
    counts = {"num_elements": elements, "processing_ns": busy, "bytes_produced": produced}
    return Node(id=number, name=name, parameters=dict(parameters or {}), inputs=inputs, **counts)


TRACED = int(Flag.TRACED)
NESTED = int(Flag.NESTED)
END = int(Flag.END)
