"""Empties the rings and logs of all measured processes into memory, and memory into durable segments.

A ring's reader cursor moves only when the records are on disk: a sidecar killed in between reads them again from the
ring, and a restarted one continues after the last durable record. ``collector.agent_files.ring`` counts what was lost.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.collector.agent_files import graph_blocks
from stepscope.collector.agent_files.log import LogLine, LogTail, Position
from stepscope.collector.agent_files.ring import Batch, RingReader
from stepscope.collector.recording.process_ends import ProcessEnds
from stepscope.collector.recording.recent import Recent
from stepscope.launcher import rundir
from stepscope.launcher.mask import mask_command, mask_text
from stepscope.model.log import events
from stepscope.model.log.cluster import MemberSeen
from stepscope.model.log.graph import NodeColumns
from stepscope.model.log.look import LookTaken
from stepscope.model.log.memory import MemoryHeld
from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import WorkerInfo
from stepscope.native import process_stat
from stepscope.native.kernel import holes
from stepscope.store.writer import EventRow, LogPosition, SessionWriter
from stepscope.tables.errors import CaptureError
from stepscope.tables.records import RecordTable
from stepscope.wire.env import PROCS_NAME, RING_NAME
from stepscope.wire.ring import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from stepscope.model.log.events import AnyEvent, CaptureTaken

MAX_PENDING = 4_000_000
"""Maximum number of records kept in memory while the disk refuses them (160 MB); beyond it the oldest are dropped and
counted."""
_ABOUT_PROCESS = frozenset({"process", "framework", "end", "capture", "look", "profiler", "member", "memory-held"})
_WITH_COMMAND = frozenset({"process", "child"})
_ABOUT_FILES = frozenset(
    {"name", "code", "trace", "dataset", "iterator", "child", "model", "pyfunction", "layer", "import"}
)


class WorkerDrain:
    """One measured process: its ring, its log, and its data that are not durable yet."""

    def __init__(self, folder: Path, writer: SessionWriter, origin_ns: int, *, writable: bool = True) -> None:
        """Follow the process whose directory is ``folder``, after the part that ``writer`` already has."""
        self.folder = folder
        self.key = folder.name
        pid, _, start = self.key.partition("-")
        self.pid = int(pid) if pid.isdigit() else 0
        self.start_ticks = int(start) if start.isdigit() else 0
        self.info = WorkerInfo(key=self.key, pid=self.pid)
        self.files: set[str] = set()
        """Files named in its log lines."""
        self.kinds: set[int] = set()
        self.types: set[str] = set()
        """Kinds of the records and types of the lines seen."""
        self.closed = False
        self.problem = ""
        self._origin_ns = origin_ns
        self._writable = writable
        self._durable_records = writer.durable_records(self.key)
        position = writer.durable_log(self.key)
        self._tail = LogTail(str(folder), Position(*position))
        self._ring: RingReader | None = None
        self._batches: list[Batch] = []
        self._lines: list[LogLine] = []
        self._nodes: list[NodeColumns] = []
        self.pending = 0
        self.recent = Recent(origin_ns)
        self.reading = False
        """Flag: more nodes of graphs may follow those received."""
        self.unread = False
        """Flag: tf.data's model of an iterator cannot be read."""
        self.profiler_server = False
        self.answers: dict[str, CaptureTaken] = {}
        """Results of requested captures, by their ids."""
        self.looks: dict[str, LookTaken] = {}
        """First looks that it began by itself, or found too dear, by their ids."""
        self.held: list[MemoryHeld] = []
        """What its variables held when a capture of memory began or ended, the newest two."""
        self.profiled = False
        """Flag: its own profiler runs, or a profiler server could start it at any moment."""
        for kind, text in writer.stored_lines(self.key):
            self._note(kind, text)
            self.recent.add_lines([LogLine(type=kind, at=0, text=text)])

    def alive(self) -> bool:
        """Whether the process still runs."""
        return process_stat.alive(self.pid, self.start_ticks)

    def poll(self, now_ns: int, *, final: bool = False) -> None:
        """Take new data; ``final``: the process is dead."""
        lines = self._without_nodes([_masked(line) for line in self._tail.read(final=final)])
        if lines:
            self._lines.extend(lines)
            self.recent.add_lines(lines)
            for line in lines:
                self._note(line.type, line.text)
        self._ring = self._ring or self._open_ring()
        if self._ring is None:
            return
        self._take(self._ring.drain(now_ns, final=final))
        if final:
            self._take(self._ring.take_untold(now_ns))

    def doing(self) -> int:
        """What it does at this moment, as ``wire.doing.Doing``."""
        return self._ring.doing() if self._ring is not None else 0

    def _without_nodes(self, lines: list[LogLine]) -> list[LogLine]:
        """The lines that are kept as written; nodes of graphs have a separate table."""
        kept = []
        for line in lines:
            self.reading &= line.type != graph_blocks.ALL_READ
            if line.type != graph_blocks.TYPE:
                kept.append(line)
                continue
            try:
                block = graph_blocks.decode(line.text)
            except ValueError:
                self._tail.damaged += 1
                continue
            self._nodes.append(block)
            self.recent.nodes.append(block)
            self.reading = True
            self.files.update(file for file in block.texts["file"][1] if file)
        return kept

    def _take(self, batch: Batch) -> None:
        if len(batch.records):
            self._batches.append(batch)
            self.recent.add_records(batch.records)
            self.pending += len(batch.records)
            self.kinds.update(np.unique(batch.records["kind"]).tolist())
            if self.pending > MAX_PENDING:
                self._drop_oldest()

    def _open_ring(self) -> RingReader | None:
        if self.problem:
            return None
        try:
            return RingReader(str(self.folder / RING_NAME), self._durable_records, writable=self._writable)
        except FileNotFoundError:
            return None
        except (OSError, CaptureError, ValueError) as error:
            self.problem = f"process {self.pid}: its ring cannot be read: {error}"
            return None

    def _drop_oldest(self) -> None:
        dropped = self._batches.pop(0)
        self.pending -= len(dropped.records)
        if self._ring is not None:
            self._ring.lost += len(dropped.records)

    def _note(self, kind: str, text: bytes) -> None:
        """Keep the parts of a log line that the manifest and the sources need."""
        self.types.add(kind)
        self.unread |= kind == "itermodel" and b'"error"' in text
        if kind in _ABOUT_PROCESS:
            try:
                event = events.decode(text)
            except msgspec.DecodeError:
                return
            self._note_process(event)
        elif kind in _ABOUT_FILES:
            try:
                fields = msgspec.json.decode(text, type=_FileFields)
            except msgspec.DecodeError:
                return
            self.files.update(f for f in (fields.file, fields.fn_file, fields.call_file) if f)
            self.files.update(frame[0] for frame in fields.stack)

    def _note_process(self, event: AnyEvent) -> None:
        if isinstance(event, events.ProcessStarted):
            self.info = msgspec.structs.replace(
                self.info, ppid=event.ppid, command=tuple(event.argv), started_ns=event.at - self._origin_ns
            )
        elif isinstance(event, events.Framework):
            frameworks = {**self.info.frameworks, event.name: event.version}
            self.info = msgspec.structs.replace(self.info, frameworks=frameworks)
        elif isinstance(event, events.ProcessEnded):
            self.info = msgspec.structs.replace(
                self.info,
                clean_exit=True,
                ended_ns=event.at - self._origin_ns,
                lost_lines=self.info.lost_lines + event.lost_lines,
            )
        elif isinstance(event, MemberSeen):
            fields = {name: getattr(event, name) for name in MemberInfo.__struct_fields__}
            self.info = msgspec.structs.replace(self.info, member=MemberInfo(**fields))
        elif isinstance(event, events.CaptureTaken):
            ends = [end - self._origin_ns for end in event.ends]
            self.answers[event.id] = msgspec.structs.replace(event, at=event.at - self._origin_ns, ends=ends)
        elif isinstance(event, LookTaken):
            self.looks[event.id] = event
        else:
            self._note_more(event)

    def _note_more(self, event: AnyEvent) -> None:
        if isinstance(event, MemoryHeld) and event.reason == "asked":
            self.held = [*self.held[-1:], event]
        elif isinstance(event, events.UserProfiler):
            self.profiler_server |= event.action == "server"
            if event.action in {"start", "stop"}:
                self.profiled = event.action == "start"
            self.profiled |= self.profiler_server

    def flush(self, writer: SessionWriter) -> None:
        """Make everything taken durable, then update the ring and drop read log files.

        Raises:
            OSError: no space, or no rights; nothing is lost yet, the next flush tries again.
        """
        if self._batches:
            writer.write_records(self.key, self._pending_records())
            self._durable_records = int(self._batches[-1].indexes[-1]) + 1
            self._batches.clear()
            self.pending = 0
            if self._ring is not None and self._writable:
                self._ring.mark_durable(self._durable_records)
                self._ring.forget_untold()
        if self._nodes:  # before the lines, which say how far the log was read: nodes written twice count once
            writer.write_graphs(self.key, self._nodes)
            self._nodes.clear()
        if self._lines:
            rows = [EventRow(line.at - self._origin_ns if line.at else 0, line.type, line.text) for line in self._lines]
            writer.write_events(self.key, rows, LogPosition(*self._tail.position))
            self._lines.clear()
            if self._writable:
                self._tail.release(self._tail.position)

    def _pending_records(self) -> RecordTable:
        records = np.concatenate([b.records for b in self._batches])
        indexes = np.concatenate([b.indexes for b in self._batches])
        columns = {
            name: records[name].astype(np.int64) for name in ("dur_ns", "arg", "name", "kind", "flags", "thread")
        }
        return RecordTable(start_ns=records["start_ns"] - self._origin_ns, seq=indexes + 1, **columns)

    def summary(self) -> WorkerInfo:
        """The process's entry in the manifest, including losses."""
        info, ring = self.info, self._ring
        lost, damaged = (ring.lost + ring.torn + ring.damaged, ring.damaged) if ring is not None else (0, 0)
        return msgspec.structs.replace(
            info,
            lost_records=info.lost_records + lost,
            damaged_records=info.damaged_records + damaged,
            lost_lines=info.lost_lines + self._tail.damaged,
        )

    def close(self) -> None:
        """Stop following."""
        self.info = self.summary()
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        self._tail.damaged = 0
        self._tail.close()
        self.recent.forget()
        self.closed = True


def _remove(folder: Path) -> None:
    """Delete the directory of a process, whose content is durable."""
    ring = folder / RING_NAME
    if ring.is_symlink():
        rundir.forget(ring.resolve())
    shutil.rmtree(folder, ignore_errors=True)


def _release(ring: Path) -> None:
    """Give the memory of a ring back."""
    fd = os.open(ring, os.O_RDWR | os.O_CLOEXEC)
    try:
        holes.punch(fd, HEADER_BYTES, os.fstat(fd).st_size - HEADER_BYTES)
    finally:
        os.close(fd)


def _masked(line: LogLine) -> LogLine:
    """A log line without the secrets in its command line, if it has one."""
    if line.type not in _WITH_COMMAND:
        return line
    try:
        fields = msgspec.json.decode(line.text)
        if "argv" in fields:
            fields["argv"] = mask_command([str(word) for word in fields["argv"]])
        if "command" in fields:
            fields["command"] = mask_text(str(fields["command"]))
    except (msgspec.DecodeError, TypeError):
        return LogLine(type=line.type, at=line.at, text=b"{}")
    return LogLine(type=line.type, at=line.at, text=msgspec.json.encode(fields))


class _FileFields(msgspec.Struct):
    file: str = ""
    fn_file: str = ""
    call_file: str = ""
    stack: list[tuple[str, str, int]] = []


class Drainer:
    """All measured processes of a run."""

    def __init__(self, run: Path, writer: SessionWriter, origin_ns: int, *, writable: bool = True) -> None:
        """Follow the processes that register in ``run``."""
        self.workers: dict[str, WorkerDrain] = {}
        self.ends = ProcessEnds()
        self._procs = str(run / PROCS_NAME)
        self._run = run
        self._writer = writer
        self._origin_ns = origin_ns
        self._writable = writable
        self._seen_ns = -1
        self._retired: list[WorkerDrain] = []

    def discover(self) -> None:
        """Find new processes. Cost: one ``stat`` if there are none."""
        try:
            changed = os.stat(self._procs).st_mtime_ns
        except FileNotFoundError:
            return
        if changed == self._seen_ns:
            return
        self._seen_ns = changed
        for name in sorted(os.listdir(self._procs)):
            folder = self._run / PROCS_NAME / name
            if name not in self.workers and folder.is_dir():
                self.workers[name] = WorkerDrain(folder, self._writer, self._origin_ns, writable=self._writable)

    def poll(self, now_ns: int, *, final: bool = False) -> None:
        """Take the new data of every process."""
        self.discover()
        for worker in self.workers.values():
            if not worker.closed:
                worker.poll(now_ns, final=final)
        self.ends.look({w.key: w.pid for w in self.workers.values() if not w.closed and w.alive()})

    def pending(self) -> int:
        """The number of records in memory that are not durable."""
        return sum(worker.pending for worker in self.workers.values())

    def flush(self) -> None:
        """Make everything durable.

        Raises:
            OSError: no space, or no rights.
        """
        for worker in self.workers.values():
            if not worker.closed:
                worker.flush(self._writer)

    def retire_dead(self, now_ns: int) -> None:
        """Finish with processes that have ended. Their directories stay until ``remove_retired``: a collector that dies
        before the manifest says how they ended leaves it to the next one to read that.
        """
        for worker in self.workers.values():
            if not worker.closed and not worker.alive():
                worker.poll(now_ns, final=True)
                worker.flush(self._writer)
                if not worker.info.ended_ns:
                    worker.info = msgspec.structs.replace(worker.info, ended_ns=now_ns - self._origin_ns)
                worker.close()
                self._retired.append(worker)

    def remove_retired(self) -> None:
        """Free the memory of the rings of processes that have ended: the manifest has what is known of them."""
        while self._retired:
            _remove(self._retired.pop().folder)

    def release(self, keys: Collection[str]) -> None:
        """Give the memory of these processes' rings back: they record no more.

        Raises:
            OSError: their file system has no holes, or one of them is gone.
        """
        for key in keys:
            if key in self.workers and not self.workers[key].pending:
                _release(self.workers[key].folder / RING_NAME)

    def alive_pids(self) -> frozenset[int]:
        """Pids of the measured processes that are followed."""
        return frozenset(worker.pid for worker in self.workers.values() if not worker.closed)

    def files(self) -> set[str]:
        """Files named in log lines during this run of the sidecar."""
        return set().union(*(worker.files for worker in self.workers.values()))
