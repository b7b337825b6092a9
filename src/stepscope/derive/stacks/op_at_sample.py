"""The op for which generated code runs, from an op trace of the same moment.

TensorFlow's profiler records when each op ran on which thread. A sample on an op's own thread belongs to the op that
ran there at that time. Thread pools run parts of oneDNN's primitives while the op's own thread waits: if the sample
says for which thread it works (``SampleTable.op_thread``), it belongs to the op of that thread; if not,

1. to the op of the thread's samples just before or after, if that op was running at this moment too;
2. to the only op that was running at that moment, among those that run generated code at all (by type: oneDNN's, or
   observed);
3. to the only op whose type was observed to run the same primitive.

If several are left, the sample is ambiguous and gets no op; likewise if none ran. The op appears in the stack as a
frame of the module "[op trace]", named as TensorFlow does ("scope/name:Type"), with the line of the user's code that
made it or its layer if the graph was read. Results of 1 to 3 are marked APPROXIMATE.
"""

from __future__ import annotations

import bisect
import enum
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.graph.index import CALLING, GraphIndex
from stepscope.derive.optrace import line_times
from stepscope.derive.optrace.host import event_nesting
from stepscope.derive.stacks.op_of_pool_thread import OP_TRACE, place_of_op, primitive_of
from stepscope.tables.errors import DamagedError, SessionError
from stepscope.tables.optrace import Category, LineKind
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, StackBuilder, StackFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.session.session import Session
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool
    from stepscope.tables.stacks import StackProfile

NEAR_NS = 25_000_000
"""Largest distance between samples of one thread within one run of one op: two and a half sampling periods."""
_EAGER, _FUNCTION = "EagerLocalExecute: ", "__"
"""Names of calls of eager ops, and the prefix of function names. Such an op may have no event of its own."""
ONEDNN = "_Mkl"
"""Prefix of the types of ops that TensorFlow has oneDNN run."""
_MASK = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907 ^ (8 * _MULTIPLIER & _MASK)
_SHIFT = 47


class OpAnswer(enum.IntEnum):
    """How the op of a sample is known, or why it is not."""

    NO_TRACE = 0
    """No op trace covers that moment."""
    EXACT = 1
    """The op of the thread that the sample works for."""
    BESIDE = 2
    """The op of the thread's samples just before or after."""
    ALONE = 3
    """The only op that was running."""
    PRIMITIVE = 4
    """The only running op that is known to run the same primitive."""
    AMBIGUOUS = 5
    """Several candidates were running."""
    NONE = 6
    """No candidate was running."""


KNOWN = frozenset({OpAnswer.EXACT, OpAnswer.BESIDE, OpAnswer.ALONE, OpAnswer.PRIMITIVE})


class OpRun(NamedTuple):
    """One run of an op."""

    start_ns: int
    end_ns: int
    name: str
    """Name of the op; "" for an eager call without an event of its own."""
    type: str


def line_ids(thread: int) -> tuple[int, int]:
    """The numbers that TensorFlow's profiler may give to the line of a thread, from its ``pthread_self()``.

    They are libstdc++'s hash of that value: all 64 bits, or the lower 32 (TensorFlow 2.15). Source: TSL, posix/env.cc,
    GetCurrentThreadId; libstdc++-v3/libsupc++/hash_bytes.cc, ``_Hash_bytes`` of 8 bytes.

    >>> line_ids(0x7FED7D61F6C0)
    (-6883789988733336681, 623428503)
    """
    value = _SEED ^ _shifted(thread * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK
    value = _shifted(_shifted(value * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK)
    return value - (value >> 63 << 64), value & 0xFFFFFFFF


def _eager(trace: OpTrace) -> Bool:
    """Whether each kind of event is the call of an eager op. bool[meta]."""
    called = [text.startswith(_EAGER) and not text.startswith(_EAGER + _FUNCTION) for text in trace.strings]
    return np.array(called, np.bool_)[trace.metas.name]


def _shifted(value: int) -> int:
    return value ^ value >> _SHIFT


class _Line:
    """The ops of one thread."""

    def __init__(self, start_ns: I64, dur_ns: I64, metas: I64) -> None:
        self._starts = start_ns
        self._ends = start_ns + dur_ns
        self._metas = metas
        self._parents = event_nesting.parents(start_ns, dur_ns)

    def at(self, at_ns: int) -> tuple[int, int, int] | None:
        """(start, end, meta) of the innermost op at a moment."""
        i = int(np.searchsorted(self._starts, at_ns, side="right")) - 1
        while i >= 0 and self._ends[i] <= at_ns:
            i = int(self._parents[i])
        return (int(self._starts[i]), int(self._ends[i]), int(self._metas[i])) if i >= 0 else None


class OpTimeline:
    """The ops of one process, by time and thread."""

    def __init__(self, traces: Sequence[OpTrace], index: GraphIndex | None = None) -> None:
        """``index``: the nodes of the process's graphs, which hold their source lines."""
        self._index = index
        self._frames: dict[tuple[str, str], Frame] = {}
        self._lines: dict[int, list[tuple[OpTrace, _Line]]] = defaultdict(list)
        """Lines by the profiler's number of the thread."""
        self._spans: list[tuple[int, int]] = []
        for trace in traces:
            self._add(trace)

    def _add(self, trace: OpTrace) -> None:
        is_op = ((trace.categories() == Category.OP) | _eager(trace)[trace.events.meta]) & (trace.events.dur_ns > 0)
        events = trace.events
        spans = []
        for line in trace.lines_of(LineKind.THREAD):
            mine = np.flatnonzero(is_op[line.slice]) + line.first
            if len(mine):
                found = _Line(events.start_ns[mine], events.dur_ns[mine], events.meta[mine].astype(np.int64))
                self._lines[line.id].append((trace, found))
                spans.append((int(events.start_ns[mine[0]]), int(events.end_ns[mine].max())))
        if spans:
            self._spans.append((min(start for start, _ in spans), max(end for _, end in spans)))

    def covers(self, at_ns: int) -> bool:
        """Whether the op traces cover a moment."""
        return any(start <= at_ns < end for start, end in self._spans)

    def on(self, thread: int, at_ns: int) -> OpRun | None:
        """The op of a thread at a moment; none if it only calls other ops. ``thread``: its ``pthread_self()``."""
        found = (self._on_line(line, at_ns) for line in line_ids(thread))
        return next((run for run in found if run is not None), None)

    def _on_line(self, line_id: int, at_ns: int) -> OpRun | None:
        for trace, line in self._lines.get(line_id, ()):
            found = line.at(at_ns)
            if found is not None:
                start, end, meta = found
                kind = trace.strings[trace.metas.op_type[meta]]
                if not kind:
                    return OpRun(start, end, "", trace.strings[trace.metas.name[meta]].removeprefix(_EAGER))
                return None if kind in CALLING else OpRun(start, end, trace.strings[trace.metas.op_name[meta]], kind)
        return None

    def all_at(self, at_ns: int) -> list[OpRun]:
        """The ops of all threads at a moment, without calls of eager ops, whose ops may run on other threads."""
        found = (self._on_line(line, at_ns) for line in self._lines)
        return [run for run in found if run is not None and run.name]

    def frame(self, run: OpRun) -> Frame:
        """An op as a frame of a stack."""
        key = run.name, run.type
        if key not in self._frames:
            place = self._place(*key)
            self._frames[key] = Frame(
                f"{run.name}:{run.type}" if run.name else run.type,
                file=place.file if place is not None else "",
                line=place.line if place is not None else 0,
                module=OP_TRACE,
                kind=FrameKind.FRAMEWORK,
            )
        return self._frames[key]

    def _place(self, name: str, kind: str) -> line_times.Line | None:
        if self._index is None:
            return None
        return line_times.origin(self._index, self._index.node_of(name, kind)).place


class _Sample(Struct, frozen=True, kw_only=True):
    """A sample in generated code."""

    at_ns: int
    thread: int
    """Index into the profile's threads."""
    stack: int
    op_thread: int
    primitive: str


def of_session(session: Session, profiles: Sequence[StackProfile]) -> dict[int, OpTimeline]:
    """Timed ops by pid, for processes whose op traces overlap their stacks. Cost: reads these traces."""
    begin = min((one.begin_ns for one in profiles if one.begin_ns >= 0), default=0)
    end = max((one.end_ns for one in profiles), default=-1)
    captured = {
        name.rpartition("/")[2]
        for one in session.manifest.captures
        for name in one.files
        if one.at_ns <= end and one.at_ns + one.recorded_ns >= begin
    }
    found = {}
    for worker in session.workers:
        traces = []
        for stored in session.op_traces:
            if stored.worker == worker.info.key and stored.name in captured:
                try:
                    traces.append(stored.load())
                except DamagedError:
                    raise
                except SessionError:  # reported with the op traces
                    continue
        if traces:
            found[worker.info.pid] = OpTimeline(traces, GraphIndex(worker) if len(worker.graphs) else None)
    return found


def with_ops_at_samples(
    profiles: Sequence[StackProfile], ops: dict[int, OpTimeline]
) -> tuple[tuple[StackProfile, ...], tuple[list[OpAnswer], ...]]:
    """Profiles with the op of each sample in generated code, and how each is known: empty for other profiles."""
    samples = [_samples(profile, ops) for profile in profiles]
    told = [_told(profile, mine, ops) for profile, mine in zip(profiles, samples, strict=True)]
    return (
        tuple(_with_frames(*one, ops) for one in zip(profiles, samples, told, strict=True)),
        tuple([how for _, how in one] for one in told),
    )


def _samples(profile: StackProfile, ops: dict[int, OpTimeline]) -> dict[int, _Sample]:
    """Samples in generated code that have callers, by row."""
    if not ops:
        return {}
    samples = profile.samples
    chains: dict[int, str] = {}
    found = {}
    for row in np.flatnonzero(samples.flags & StackFlag.ATTACHED).tolist():
        thread, stack = int(samples.thread[row]), int(samples.stack[row])
        if UNKNOWN in (thread, stack) or profile.threads[thread].pid not in ops:
            continue
        if stack not in chains:
            chains[stack] = primitive_of(profile.frames_of(stack))
        found[row] = _Sample(
            at_ns=int(samples.at_ns[row]),
            thread=thread,
            stack=stack,
            op_thread=int(samples.op_thread[row]),
            primitive=chains[stack],
        )
    return found


def _told(
    profile: StackProfile, samples: dict[int, _Sample], ops: dict[int, OpTimeline]
) -> list[tuple[OpRun | None, OpAnswer]]:
    """The op of each sample and how it is known."""
    mine = {row: ops[profile.threads[sample.thread].pid] for row, sample in samples.items()}
    exact = {
        row: run
        for row, sample in samples.items()
        if sample.op_thread and (run := mine[row].on(sample.op_thread, sample.at_ns)) is not None
    }
    kinds = {run.type for run in exact.values()}
    known: dict[str, set[str]] = defaultdict(set)
    """Types of ops observed to run each primitive."""
    near: dict[int, list[tuple[int, str, OpRun]]] = defaultdict(list)
    for row, run in exact.items():
        sample = samples[row]
        known[sample.primitive].add(run.type)
        near[sample.thread].append((sample.at_ns, sample.primitive, run))
    for of_thread in near.values():
        of_thread.sort(key=lambda one: one[0])
    found: list[tuple[OpRun | None, OpAnswer]] = []
    for row, sample in samples.items():
        if row in exact:
            found.append((exact[row], OpAnswer.EXACT))
        elif not mine[row].covers(sample.at_ns):
            found.append((None, OpAnswer.NO_TRACE))
        elif (run := _beside(near[sample.thread], sample)) is not None:
            found.append((run, OpAnswer.BESIDE))
        else:
            may = [r for r in mine[row].all_at(sample.at_ns) if r.type.startswith(ONEDNN) or r.type in kinds]
            found.append(_one_of(may, known[sample.primitive]))
    return found


def _beside(near: Sequence[tuple[int, str, OpRun]], sample: _Sample) -> OpRun | None:
    """The op of the thread's samples before and after, if they agree."""
    after = bisect.bisect_left(near, sample.at_ns, key=lambda one: one[0])
    runs = {
        run
        for at_ns, primitive, run in near[max(after - 1, 0) : after + 1]
        if abs(at_ns - sample.at_ns) <= NEAR_NS
        and primitive == sample.primitive
        and run.start_ns <= sample.at_ns < run.end_ns
    }
    return runs.pop() if len(runs) == 1 else None


def _one_of(runs: Sequence[OpRun], types: set[str]) -> tuple[OpRun | None, OpAnswer]:
    if len(runs) <= 1:
        return (runs[0], OpAnswer.ALONE) if runs else (None, OpAnswer.NONE)
    fits = [run for run in runs if run.type in types]
    return (fits[0], OpAnswer.PRIMITIVE) if len(fits) == 1 else (None, OpAnswer.AMBIGUOUS)


def _with_frames(
    profile: StackProfile,
    samples: dict[int, _Sample],
    told: Sequence[tuple[OpRun | None, OpAnswer]],
    ops: dict[int, OpTimeline],
) -> StackProfile:
    runs = {row: (run, how) for row, (run, how) in zip(samples, told, strict=True) if run is not None}
    if not runs:
        return profile
    builder = StackBuilder()
    chains = [profile.frames_of(stack) for stack in range(len(profile.stacks))]
    numbers, flags = profile.samples.stack.copy(), profile.samples.flags.copy()
    for row, stack in enumerate(profile.samples.stack.tolist()):
        if stack == UNKNOWN:
            continue
        chain = chains[stack]
        if row in runs:
            run, how = runs[row]
            place = place_of_op(chain)
            op = ops[profile.threads[samples[row].thread].pid].frame(run)
            chain = (*chain[:place], op, *chain[place:])
            flags[row] |= 0 if how is OpAnswer.EXACT else StackFlag.APPROXIMATE
        numbers[row] = builder.stack_of(chain)
    return replace(
        profile,
        frames=builder.frames,
        stacks=builder.stacks,
        samples=replace(profile.samples, stack=numbers, flags=flags),
    )
