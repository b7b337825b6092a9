"""Reads a session, from a directory or from one packed file, and reports what it could not read.

Everything in a session is hostile: it may have come by mail. Sizes are bounded, names are matched against patterns
before they are opened, and a damaged segment costs that segment, not the session.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from stepscope.model.log import events as model_events
from stepscope.model.log.graph import GraphTable, assemble
from stepscope.model.session.session import Manifest, Peers, Session, StoredMember, StoredOpTrace, Worker, WorkerInfo
from stepscope.store import (
    bundle,
    experiments,
    gaps,
    graphs,
    losses,
    manifests,
    memory_looks,
    optrace,
    page_walks,
    replays,
    stacks,
    system_calls,
    tables,
)
from stepscope.store.segments import counting
from stepscope.tables import layout, nesting
from stepscope.tables.errors import DamagedError, SessionError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.network_tables import ClockProbeTable, PacketTable, TcpTable
from stepscope.tables.records import (
    BurstTable,
    CoreTable,
    DiskTable,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.model.log.events import AnyEvent
    from stepscope.store.segments import Segment
    from stepscope.tables.address_space import MemoryLook
    from stepscope.tables.records import Table
    from stepscope.tables.stacks import StackProfile
    from stepscope.tables.system_calls import SystemCalls

MAX_INDEX_BYTES = 16 << 20
MAX_SOURCE_BYTES = 1 << 20
MAX_SOURCES = 1_000
DAMAGED = "DX106"
"""Code of the diagnostics about files of a session that cannot be read."""


T = TypeVar("T")


class _Damage:
    """Damage found while reading."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.files: list[str] = []
        """Files whose content was altered, or that are missing."""

    def add(self, text: str) -> None:
        self.diagnostics.append(Diagnostic(code=DAMAGED, text=text))

    def lost(self, name: str, what: str) -> None:
        """Record a file, and its defect."""
        self.files.append(name)
        self.add(f"{name} {what}")


def read(path: str | Path) -> Session:
    """The session at ``path``; see ``stepscope.store.open_session``."""
    path = Path(path)
    if path.is_dir():
        return _read_files(bundle.DirectoryFiles(path))
    if path.is_file():
        with bundle.PackedFiles(path) as files:
            return _read_files(files)
    raise SessionError(f"{path}: no such session; expected a NAME.stepscope directory or a packed file")


def read_member(path: Path, folder: str) -> Session:
    """A member of the joint session at ``path``.

    Raises:
        SessionError: it is missing or damaged.
    """
    inside = f"{layout.MEMBERS}/{folder}"
    if path.is_dir():
        return _read_files(bundle.DirectoryFiles(path / inside))
    with bundle.PackedFiles(path) as files:
        return _read_files(bundle.FilesInside(files, inside))


def _read_files(files: bundle.Files) -> Session:
    manifest = manifests.of(files)
    damage = _Damage()
    workers = _workers(files, manifest, damage)
    rivals = _table(files, "rivals", RivalTable, damage)
    session = Session(
        manifest=manifest,
        workers=workers,
        process=_table(files, "process", ProcessTable, damage),
        threads=_table(files, "threads", ThreadTable, damage),
        host=_table(files, "host", HostTable, damage),
        rivals=rivals,
        rival_names=_names(files, layout.RIVAL_NAMES, damage),
        cores=_table(files, "cores", CoreTable, damage),
        links=_table(files, "links", LinkTable, damage),
        disks=_table(files, "disks", DiskTable, damage),
        memory=_table(files, "memory", MemoryTable, damage),
        gpus=_table(files, "gpus", GpuTable, damage),
        bursts=_table(files, "bursts", BurstTable, damage),
        memory_events=_table(files, "memory_events", MemoryEventTable, damage),
        peers=Peers(
            clock_probes=_table(files, "clock_probes", ClockProbeTable, damage),
            tcp=_table(files, "tcp", TcpTable, damage),
            packets=_table(files, "packets", PacketTable, damage),
            members=_members(files, manifest, damage),
        ),
        resource_names=_names(files, layout.RESOURCE_NAMES, damage),
        sources=_sources(files, damage),
        stacks=_stacks(files, damage),
        op_traces=_op_traces(files, damage),
        memory_looks=_memory_looks(files, damage),
        system_calls=_system_calls(files, damage),
        replays=_one_file(files, layout.REPLAY, replays.MAX_BYTES, replays.decode, damage),
        experiment=_one_file(files, layout.EXPERIMENT, experiments.MAX_BYTES, experiments.decode, damage),
        page_walks=_one_file(files, layout.PAGE_WALKS, page_walks.MAX_BYTES, page_walks.decode, damage),
    )
    if not damage.diagnostics:
        return session
    found = (*manifest.diagnostics, *damage.diagnostics)
    manifest = msgspec.structs.replace(manifest, diagnostics=found)
    return replace(session, manifest=manifest, lost_files=tuple(damage.files))


def _workers(files: bundle.Files, manifest: Manifest, damage: _Damage) -> list[Worker]:
    infos = {info.key: info for info in manifest.workers if layout.WORKER_PATTERN.fullmatch(info.key)}
    for key in files.folders(layout.WORKERS):
        if key not in infos and layout.WORKER_PATTERN.fullmatch(key):
            infos[key] = WorkerInfo(key=key, pid=_pid_of(key))
    return [_worker(files, info, manifest, damage) for info in infos.values()]


def _worker(files: bundle.Files, info: WorkerInfo, manifest: Manifest, damage: _Damage) -> Worker:
    folder = f"{layout.WORKERS}/{info.key}"
    segments = counting(files.names(folder), layout.RECORDS)
    stored = _records(files, folder, segments, damage)
    records, detached, in_gaps = gaps.read(stored)
    return Worker(
        info=info,
        records=records,
        gaps=detached,
        in_gaps=in_gaps,
        lost=losses.build(stored, segments, (info.started_ns, info.ended_ns or manifest.ended_ns), info.lost_records),
        events=_events(files, folder, manifest.origin_monotonic_ns, damage),
        graphs=_graphs(files, folder, damage),
    )


def _members(files: bundle.Files, manifest: Manifest, damage: _Damage) -> list[StoredMember]:
    """The member sessions of a joint one; a member has none itself."""
    if not manifest.members or files.inside:
        return []
    there, found = set(files.folders(layout.MEMBERS)), []
    for member in manifest.members:
        if member.folder not in there or not layout.MEMBER_PATTERN.fullmatch(member.folder):
            damage.lost(f"{layout.MEMBERS}/{member.folder}", f"is missing: the session of {member.name}")
            continue
        load = partial(read_member, Path(files.where), member.folder)
        found.append(StoredMember(folder=member.folder, name=member.name, load=load))
    return found


def _pid_of(key: str) -> int:
    head = key.split("-", 1)[0]
    return int(head) if head.isdigit() else 0


def _read_part(files: bundle.Files, name: str, damage: _Damage) -> tuple[dict[str, Any], dict[str, str]] | None:
    try:
        return tables.read_columns(files.read(name, bundle.MAX_FILE_BYTES))
    except (OSError, ValueError, pa.ArrowException) as error:
        first_line = str(error).strip().split("\n", 1)[0]
        damage.lost(name, f"cannot be read and is left out: {first_line}")
        return None


def _records(files: bundle.Files, folder: str, segments: Sequence[Segment], damage: _Damage) -> RecordTable:
    parts: list[RecordTable] = []
    durable = -1
    for segment in segments:
        part = _read_part(files, f"{folder}/{segment.name}", damage)
        if part is None:
            continue
        table = _checked(RecordTable, part[0], f"{folder}/{segment.name}", damage)
        if segment.first <= durable:
            table = table.take(table.seq > durable + 1)
        durable = segment.last
        parts.append(table)
    everything = RecordTable.concat(parts)
    order = np.lexsort((-everything.dur_ns, everything.start_ns))
    return everything.take(order)


def _graphs(files: bundle.Files, folder: str, damage: _Damage) -> GraphTable:
    parts = []
    for segment in counting(files.names(folder), layout.GRAPHS):
        part = _read_part(files, f"{folder}/{segment.name}", damage)
        if part is None:
            continue
        try:
            parts.append(graphs.decode(part[0]))
        except (ValueError, TypeError, pa.ArrowException) as error:
            damage.lost(f"{folder}/{segment.name}", f"holds no nodes of graphs: {error}")
    return assemble(parts)


def _checked(cls: type[Any], part: dict[str, Any], name: str, damage: _Damage) -> Any:
    try:
        return tables.to_table(cls, [part])
    except (ValueError, TypeError, pa.ArrowException) as error:
        damage.lost(name, f"holds no {cls.__name__}: {error}")
        return cls.empty()


def _events(files: bundle.Files, folder: str, origin_ns: int, damage: _Damage) -> list[AnyEvent]:
    names = [segment.name for segment in counting(files.names(folder), layout.EVENTS)]
    events: list[AnyEvent] = []
    unknown = 0
    for name in names:
        part = _read_part(files, f"{folder}/{name}", damage)
        if part is None:
            continue
        columns = part[0]
        try:
            moments = columns["at_ns"].to_pylist()
            payloads = columns["payload"].to_pylist()
        except KeyError as error:
            damage.lost(f"{folder}/{name}", f"lacks the column {error}")
            continue
        for at_ns, payload in zip(moments, payloads, strict=True):
            try:
                event = model_events.decode(payload)
            except (msgspec.DecodeError, TypeError):
                unknown += 1
                continue
            events.append(_rebased(event, at_ns, origin_ns))
    if unknown:
        damage.add(f"{folder}: {unknown} log lines are damaged or of a type that this version does not know")
    return events


def _rebased(event: AnyEvent, at_ns: int, origin_ns: int) -> AnyEvent:
    if isinstance(event, model_events.BatchSeen) and event.loop:
        return msgspec.structs.replace(event, at=at_ns, loop=event.loop - origin_ns)
    return msgspec.structs.replace(event, at=at_ns)


def _table(files: bundle.Files, name: str, cls: type[Any], damage: _Damage) -> Any:
    parts: list[Table] = []
    for segment in counting(files.names(layout.TABLES), name):
        file = f"{layout.TABLES}/{segment.name}"
        part = _read_part(files, file, damage)
        if part is not None:
            parts.append(_checked(cls, part[0], file, damage))
    return cls.concat(parts)


def _names(files: bundle.Files, stem: str, damage: _Damage) -> list[str]:
    """Names that a table counts through."""
    names: dict[int, str] = {}
    for segment in counting(files.names(layout.TABLES), stem):
        part = _read_part(files, f"{layout.TABLES}/{segment.name}", damage)
        if part is not None and {"index", "text"} <= part[0].keys():
            names.update(zip(part[0]["index"].to_pylist(), part[0]["text"].to_pylist(), strict=True))
    bounded = min(max(names, default=-1) + 1, 1_000_000)
    return [names.get(i, "") for i in range(bounded)]


def _sources(files: bundle.Files, damage: _Damage) -> dict[str, str]:
    if layout.SOURCES_INDEX.rsplit("/", 1)[1] not in files.names(layout.SOURCES):
        return {}
    try:
        with nesting.bounded():
            index = json.loads(files.read(layout.SOURCES_INDEX, MAX_INDEX_BYTES))
        entries = [(str(e["path"]), str(e["file"])) for e in index["files"]][:MAX_SOURCES]
    except (OSError, ValueError, KeyError, TypeError) as error:
        damage.lost(layout.SOURCES_INDEX, f"cannot be read: {error}")
        return {}
    sources = {}
    stored = set(files.names(layout.SOURCES))
    for path, file in entries:
        if file not in stored:
            damage.lost(f"{layout.SOURCES}/{file}", f"is missing: the copy of {path}")
            continue
        try:
            sources[path] = files.read(f"{layout.SOURCES}/{file}", MAX_SOURCE_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError) as error:
            damage.lost(f"{layout.SOURCES}/{file}", f"cannot be read: {error}")
    return sources


def _op_traces(files: bundle.Files, damage: _Damage) -> list[StoredOpTrace]:
    found = []
    for name in optrace.names(files):
        try:
            head = optrace.head(files, name)
        except DamagedError:
            raise
        except SessionError as error:
            damage.files.append(f"{layout.OPTRACES}/{name}")
            damage.add(str(error))
            continue
        load = partial(optrace.load, Path(files.where), name, files.inside)
        found.append(StoredOpTrace(name=name, worker=head.worker, source=head.source, load=load))
    return found


def _stacks(files: bundle.Files, damage: _Damage) -> list[StackProfile]:
    profiles = []
    for file in sorted(filter(layout.STACKS_PATTERN.fullmatch, files.names(layout.STACKS))):
        name = f"{layout.STACKS}/{file}"
        try:
            profiles.append(stacks.decode(files.read(name, bundle.MAX_FILE_BYTES)))
        except (OSError, ValueError, pa.ArrowException) as error:
            first_line = str(error).strip().split("\n", 1)[0]
            damage.lost(name, f"cannot be read and is left out: {first_line}")
    return profiles


def _one_file(files: bundle.Files, path: str, limit: int, decode: Callable[[bytes], T], damage: _Damage) -> T | None:
    """What a file that a session may have holds; None without it, or if it cannot be read."""
    folder, _, name = path.rpartition("/")
    if name not in files.names(folder):
        return None
    try:
        with nesting.bounded():
            return decode(files.read(path, limit))
    except DamagedError:
        raise
    except (OSError, ValueError) as error:
        damage.lost(path, f"cannot be read and is left out: {error}")
        return None


def _memory_looks(files: bundle.Files, damage: _Damage) -> list[MemoryLook]:
    looks = []
    for file in sorted(filter(layout.MEMORY_PATTERN.fullmatch, files.names(layout.MEMORY))):
        name = f"{layout.MEMORY}/{file}"
        try:
            looks.append(memory_looks.decode(files.read(name, bundle.MAX_FILE_BYTES)))
        except (OSError, ValueError, pa.ArrowException) as error:
            first_line = str(error).strip().split("\n", 1)[0]
            damage.lost(name, f"cannot be read and is left out: {first_line}")
    return sorted(looks, key=lambda look: (look.pid, look.at_ns))


def _system_calls(files: bundle.Files, damage: _Damage) -> list[SystemCalls]:
    names = sorted(filter(layout.CALLS_PATTERN.fullmatch, files.names(layout.CALLS)))
    paths = (f"{layout.CALLS}/{name}" for name in names)
    found = (_one_file(files, path, system_calls.MAX_BYTES, system_calls.decode, damage) for path in paths)
    return [one for one in found if one is not None]
