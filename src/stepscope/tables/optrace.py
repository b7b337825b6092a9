"""The op trace: a framework profiler's recording of some steps, as columns.

An ``OpTrace`` is one capture of one host, whatever file or live session it came from (xplane, Chrome trace events,
kineto, RunMetadata). It has

* **planes**: what was observed: the host, a GPU, a TPU core, the environment. A plane without events was *not
  captured*; that says nothing about whether it was idle.
* **lines**: ordered sequences of events within a plane: a host thread, a GPU stream, or what the profiler derived from
  others (``Steps``, ``TensorFlow Ops``, ``TensorFlow Name Scope``). Times of derived lines repeat those of other lines:
  never add them up with them (``Line.derived``).
* **events**: one row each, in line order and within a line by start, the longer first; so the events of a line are one
  slice (``Line.first`` to ``Line.last``), and a parent stands before its children. Lines of a plane stand together.
* **metas**: what events of one kind share: name, op name, op type, category. A few hundred to some thousands, so
  everything about names is worked out once per meta: group by ``events.meta``, then look at ``metas``.
* **stats**: what else the profiler wrote at an event or a meta, one sparse column per name, read when it is asked for
  (``tables.optrace_stats``, where ``StatName`` lists those with a meaning).

Times are int64 nanoseconds. Readers count them from the capture's start (``source.started_unix_ns``); those in a
session count from the session's start (``shifted``). Picoseconds: ``start_ns`` and the end of an event are rounded down
to whole nanoseconds *each*, and ``dur_ns`` is the difference: nesting and adjacency survive, sums telescope. If a file
holds finer durations (TPU), ``events.dur_rem_ps`` keeps the difference from the exact duration; ``dur_ps`` adds it. A
clock in whole nanoseconds (every host and CUDA trace) loses nothing.

Producers: ``readers.xplane.xspace``, ``readers.chrome.trace_events``, ``readers.run_metadata``; ``store.optrace``
writes it to a session and reads it back; readers of row-wise formats, and tests, use ``readers.optrace_builder``.
Derived tables (``derive.optrace``) and detectors read this model and no file format. Fields are added, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.tables.blocks import take
from stepscope.tables.findings import Diagnostic
from stepscope.tables.optrace_stats import LoadedStats, PlainStat, StatColumn, StatReader, as_texts
from stepscope.tables.program_ops import ProgramOp
from stepscope.tables.records import I64

I32 = npt.NDArray[np.int32]
I16 = npt.NDArray[np.int16]
I8 = npt.NDArray[np.int8]
U8 = npt.NDArray[np.uint8]
_INT_LIMIT = 2.0**63


class PlaneKind(str, Enum):
    """Kind of an observed object."""

    HOST = "host"
    GPU = "gpu"
    TPU = "tpu"
    DEVICE = "device"
    """An accelerator of another kind."""
    METADATA = "metadata"
    """Programs (HLO) and versions; no events."""
    ENVIRONMENT = "environment"
    """Start, stop and options of the capture; no events."""
    OTHER = "other"


DEVICE_KINDS = frozenset({PlaneKind.GPU, PlaneKind.TPU, PlaneKind.DEVICE})
"""Planes of accelerators."""


class LineKind(str, Enum):
    """Kind of a line's events."""

    THREAD = "thread"
    """A host thread: nested spans, of ops and of everything around them."""
    STREAM = "stream"
    """Work in a GPU stream: kernels and copies, one after the other."""
    XLA_OPS = "xla-ops"
    """HLO ops of one TPU core, nested (a while contains its body); on a GPU derived from its kernels."""
    ASYNC_OPS = "async-ops"
    """Copies and collectives that run concurrently with XLA_OPS; they overlap each other."""
    XLA_MODULES = "xla-modules"
    """Runs of compiled programs, one event each, which contain their XLA_OPS."""
    DEVICE_TRACES = "device-traces"
    """Other spans of a device: waits, barriers (``XLA TraceMe``)."""
    STEPS = "steps"
    """Steps, as the profiler found them."""
    FRAMEWORK_OPS = "framework-ops"
    """Derived from kernels: which framework op they belong to (``TensorFlow Ops``)."""
    NAME_SCOPE = "name-scope"
    """Derived: the op's scopes, nested."""
    SOURCE = "source"
    """Derived: the source line that the op came from."""
    OTHER = "other"


class Category(IntEnum):
    """Category of an event, by its name and line; events unknown to the reader are OTHER, never guessed."""

    OTHER = 0
    OP = 1
    """Framework op that ran on the host or, on a derived line, whose kernels ran on a device."""
    KERNEL = 2
    """Work on a device other than a copy; HLO ops of a TPU are KERNEL, and have an op type."""
    COPY = 3
    """Transfer of bytes between or within memories: memcpy, memset, infeed, on a device or by the host."""
    COLLECTIVE = 4
    INPUT = 5
    """A tf.data iterator stage (``Iterator::...``), or code that pulls the next element of one."""
    CALL = 6
    """Caller of ops: a function call, eager execution, a program launch."""
    EXECUTOR = 7
    """The runtime's own work around ops: scheduling, preparing, propagating."""
    COMPILE = 8
    """Tracing, graph optimisation, XLA compilation."""
    MEMORY = 9
    """An allocation or deallocation; no duration. ``derive.optrace.device.allocator_memory`` makes a table of them."""
    STEP = 10
    """A step marker."""
    PYTHON = 11
    """A Python function seen by a Python tracer."""
    RUNTIME = 12
    """A call of the device's driver or runtime on the host (``cudaLaunchKernel``)."""
    WAIT = 13
    """Waiting for a device, a barrier or another thread."""


class TraceSource(Struct, frozen=True, kw_only=True):
    """Origin of an op trace."""

    format: str
    """Format: xplane | trace-event | kineto | run-metadata."""
    name: str = ""
    """Name of the file, without its folder; empty for a live capture."""
    size_bytes: int = 0
    hostnames: tuple[str, ...] = ()
    started_unix_ns: int = 0
    """Wall clock at time zero of the trace; 0: the file does not say."""
    dur_ns: int = 0
    """Duration from time zero to the end of the capture if the file states it, else to the end of the last event."""
    rank: int = -1
    """Number of the process within its distributed job; -1: the file does not say."""
    world_size: int = 0
    backend: str = ""
    """Number of processes of that job, and how they exchange (``gloo``); 0 and "": the file does not say."""


class Plane(Struct, frozen=True, kw_only=True):
    """An observed object. Planes are keyed by their index in ``OpTrace.planes``: ids and names repeat in real files."""

    index: int
    name: str
    """Name as in the file: ``/host:CPU``, ``/device:GPU:4``."""
    kind: PlaneKind
    ordinal: int = -1
    """Number of the device among its kind: 4 for ``/device:GPU:4``; -1 for none."""
    events: int = 0
    """Number of events in its lines; 0: not captured (which is not idle)."""
    stats: Mapping[str, PlainStat] = field(default_factory=dict)
    """Facts in the file about the device or the environment; bytes are omitted."""

    @property
    def captured(self) -> bool:
        """Whether anything was recorded of it."""
        return self.events > 0


class Line(Struct, frozen=True, kw_only=True):
    """A sequence of events: rows ``first`` to ``last`` (exclusive) of ``OpTrace.events``."""

    index: int
    plane: int
    """Index into ``OpTrace.planes``."""
    id: int
    """Id in the file: thread id, stream id; may be negative, may repeat in other planes."""
    name: str
    kind: LineKind
    first: int
    last: int
    derived: bool = False
    """Flag: its times repeat those of other lines of the plane."""
    dropped: int = 0
    """Number of events of this line that were deliberately omitted; see ``OpTrace.dropped``."""

    @property
    def slice(self) -> slice:
        """The rows of its events."""
        return slice(self.first, self.last)


class Events(Struct, frozen=True, kw_only=True):
    """All events. Shapes: [event], sorted by (line, start_ns, longer first)."""

    start_ns: I64
    dur_ns: I64
    """Duration; 0 for instants."""
    line: I32
    """Index into ``OpTrace.lines``."""
    meta: I32
    """Index into ``OpTrace.metas``."""
    dur_rem_ps: I16 | None = None
    """Exact duration in picoseconds minus 1000 x ``dur_ns``, -999 to 999; None: all zero."""

    def __len__(self) -> int:
        """The number of events."""
        return len(self.start_ns)

    @property
    def end_ns(self) -> I64:
        """``start_ns + dur_ns``."""
        return self.start_ns + self.dur_ns

    def dur_ps(self) -> I64:
        """Exact durations in picoseconds."""
        whole: I64 = self.dur_ns * 1000
        return whole if self.dur_rem_ps is None else whole + self.dur_rem_ps


class Metas(Struct, frozen=True, kw_only=True):
    """Kinds of events. Shapes: [meta]. Text columns are indices into ``OpTrace.strings``; 0 is the empty text.

    Two metas may have the same name (one per plane, or one per program): group by ``name`` or by (op_name, op_type) if
    that is intended.
    """

    name: I32
    """Name as in the file, or its ``display_name`` if the name is only an id."""
    op_name: I32
    """Name of an op: ``scope/name``, without its type; for an HLO op its name; else empty."""
    op_type: I32
    """Type of an op: ``MatMul``; for an HLO op its category or opcode; else empty."""
    category: I8
    """Value of ``Category``."""
    plane: I32
    """Index into ``OpTrace.planes``."""

    def __len__(self) -> int:
        """The number of metas."""
        return len(self.name)


class Program(Struct, frozen=True, kw_only=True):
    """A compiled program (an HLO module) whose text is in the trace."""

    name: str
    """Name: ``jit_train_step``."""
    id: int
    """Value of ``program_id`` in its ops."""
    parameters: tuple[str, ...]
    """Shapes of its arguments, as XLA prints them: ``f32[128,64]``."""
    ops: tuple[ProgramOp, ...] = ()
    """Its ops that events name."""


class Dropped(Struct, frozen=True, kw_only=True):
    """Events that the reader deliberately omitted: counted, never silent."""

    reason: str
    """Reason in a few words for the report."""
    events: int


class OpTrace(Struct, frozen=True, kw_only=True):
    """One capture of one host. The module's docstring explains the parts."""

    source: TraceSource
    planes: tuple[Plane, ...]
    lines: tuple[Line, ...]
    events: Events
    metas: Metas
    strings: Sequence[str]
    """Interned texts; ``strings[0]`` is empty."""
    stats: StatReader = field(default_factory=LoadedStats)
    programs: tuple[Program, ...] = ()
    """Compiled programs, in file order."""
    dropped: tuple[Dropped, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """Damage and repairs while reading."""

    def names(self) -> I32:
        """Name of each event: int32[event], index into ``strings``."""
        return self.metas.name[self.events.meta]

    def categories(self) -> I8:
        """``Category`` of each event: int8[event]."""
        return self.metas.category[self.events.meta]

    def metas_named(self, *names: str) -> I64:
        """The metas whose name is one of ``names``, rising."""
        sought = set(names)
        wanted = [i for i, text in enumerate(self.strings) if text in sought]
        return np.flatnonzero(np.isin(self.metas.name, np.array(wanted, np.int32))).astype(np.int64)

    def events_of(self, metas: I64) -> I64:
        """Rows of the events of these metas, rising."""
        chosen = np.zeros(len(self.metas), np.bool_)
        chosen[metas] = True
        return np.flatnonzero(take(chosen, self.events.meta)).astype(np.int64, copy=False)

    def lines_of(self, *kinds: LineKind) -> tuple[Line, ...]:
        """The lines of some kinds, in order."""
        return tuple(line for line in self.lines if line.kind in kinds)

    def rows_of(self, plane: Plane) -> tuple[int, int]:
        """Rows of a plane's events: the first, and the one after the last."""
        mine = [line for line in self.lines if line.plane == plane.index]
        return (mine[0].first, mine[-1].last) if mine else (0, 0)

    def ints(self, name: str, missing: int = -1) -> I64:
        """A stat of every event: int64[event], ``missing`` if it has none. An event's own stat takes precedence over
        its meta's. Strings become ``missing``, as do floats that no int64 can hold; others lose their fraction.
        """
        own, of_metas = self.stats.of_events(name), self.stats.of_metas(name)
        dense = np.full(len(self.events), missing, np.int64)
        if len(of_metas):
            dense[:] = self._of_metas(of_metas, missing)[self.events.meta]
        dense[own.rows] = _as_ints(own, missing)
        return dense

    def ints_of(self, name: str, rows: I64 | None = None, missing: int = -1) -> tuple[I64, I64]:
        """A stat of some events, whose rows rise (None: of all): the rows among them that have it, and the value of
        ``ints`` for each.
        """
        of_metas = self.stats.of_metas(name)
        own = self.stats.of_events(name) if rows is None else self.stats.of_rows(name, rows)
        if not len(of_metas):
            return own.rows, _as_ints(own, missing)
        rows = np.arange(len(self.events)) if rows is None else rows
        values = self._of_metas(of_metas, missing)[self.events.meta[rows]]
        values[np.searchsorted(rows, own.rows)] = _as_ints(own, missing)
        return rows, values

    def ints_at(self, name: str, rows: I64, missing: int = -1) -> I64:
        """``ints`` of some events, whose rows rise: int64[row]. Faster if most of them have the stat."""
        found, values = self.ints_of(name, rows, missing)
        if len(found) == len(rows):
            return values
        dense = np.full(len(rows), missing, np.int64)
        dense[np.searchsorted(rows, found)] = values
        return dense

    def _of_metas(self, column: StatColumn, missing: int) -> I64:
        """A stat of metas for each of them."""
        per_meta = np.full(len(self.metas), missing, np.int64)
        per_meta[column.rows] = _as_ints(column, missing)
        return per_meta

    def texts(self, name: str) -> tuple[I32, tuple[str, ...]]:
        """A stat of every event as string: (int32[event], strings); -1 if it has none. The event's own takes
        precedence.
        """
        own, of_metas = self.stats.of_events(name), self.stats.of_metas(name)
        own_codes, own_texts = as_texts(own)
        meta_codes, meta_texts = as_texts(of_metas)
        per_meta = np.full(len(self.metas), -1, np.int32)
        per_meta[of_metas.rows] = meta_codes + len(own_texts)
        dense: I32 = per_meta[self.events.meta]
        dense[own.rows] = own_codes
        return dense, own_texts + meta_texts

    def stats_of(self, event: int) -> dict[str, PlainStat]:
        """All stats of one event, its own before its meta's. Cost: reads every column; meant for one event on a
        page.
        """
        found: dict[str, PlainStat] = {}
        meta = int(self.events.meta[event])
        for row, names, read in (
            (meta, self.stats.meta_names(), self.stats.of_metas),
            (event, self.stats.event_names(), self.stats.of_events),
        ):
            for name in names:
                column = read(name)
                position = int(np.searchsorted(column.rows, row))
                if position < len(column) and column.rows[position] == row:
                    value = column.values[position]
                    found[name] = column.text(position) if column.texts is not None else value.item()
        return found

    def shifted(self, offset_ns: int) -> OpTrace:
        """The same trace with all times moved by ``offset_ns``: onto the session's clock.

        Callers: ``use_cases.importing`` (files), ``collector.captures.capture_files`` (own captures).
        """
        return replace(self, events=replace(self.events, start_ns=self.events.start_ns + offset_ns))


def _as_ints(column: StatColumn, missing: int) -> I64:
    if column.texts is not None:
        return np.full(len(column), missing, np.int64)
    if column.values.dtype == np.int64:
        return column.values.astype(np.int64, copy=False)
    held = np.abs(column.values) < _INT_LIMIT
    return np.where(held, np.where(held, column.values, 0).astype(np.int64), missing)
