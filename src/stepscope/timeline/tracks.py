"""The tracks of a session's timeline: its steps, the records of its threads, and the lines of its op traces.

Resources have series (``timeline.series_tracks``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.derive.graph.index import NOT_FOUND, GraphIndex
from stepscope.derive.kinds import KINDS
from stepscope.derive.optrace.device import data_links, event_links
from stepscope.derive.optrace.exchange import sent_tensors
from stepscope.derive.steps.steps import names_of
from stepscope.model.api.timeline import LeftOut, SpanName, TraceRange
from stepscope.model.log.events import Name, ThreadSeen, Traced
from stepscope.tables.errors import DamagedError, StepscopeError
from stepscope.tables.optrace import Category, LineKind, PlaneKind
from stepscope.tables.records import RecordTable
from stepscope.timeline import link_tracks, step_parts
from stepscope.timeline.span_track import DistinctNames, LinkedEvents, SpanTrack
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import StoredOpTrace, Worker, WorkerInfo
    from stepscope.tables.optrace import I32, Line, OpTrace
    from stepscope.tables.records import Gaps
    from stepscope.timeline.span_track import Say

OP_CATEGORY = {
    Category.OP: "op",
    Category.KERNEL: "kernel",
    Category.COPY: "copy",
    Category.COLLECTIVE: "copy",
    Category.INPUT: "input",
    Category.CALL: "call",
    Category.EXECUTOR: "runtime",
    Category.COMPILE: "tracing",
    Category.MEMORY: "memory",
    Category.STEP: "step",
    Category.PYTHON: "python",
    Category.RUNTIME: "runtime",
    Category.WAIT: "wait",
}
_DRAWN = [kind for kind, about in KINDS.items() if about.drawn]
_GAPS = -1
"""Stands for the thread of gaps, which belong to none."""
_CLUSTER = "/job:"
_STREAMS = frozenset({LineKind.STREAM, LineKind.XLA_OPS, LineKind.ASYNC_OPS, LineKind.XLA_MODULES})


class Spans(Struct):
    """Reads a session's tracks one by one. Counts and names are complete once all tracks have been read."""

    view: SessionView
    say: Say
    names: DistinctNames = field(default_factory=DistinctNames)
    left_out: list[LeftOut] = field(default_factory=list)
    traces: list[TraceRange] = field(default_factory=list)
    linked: list[LinkedEvents] = field(default_factory=list)

    def of_processes(self) -> Iterator[SpanTrack]:
        """The steps, then each process by its threads."""
        session = self.view.session
        self.say(0.0, "finding the steps")
        yield from self._steps()
        for done, worker in enumerate(session.workers, 1):
            self.say(done / self._parts, f"reading process {worker.info.pid}")
            yield from self._of_worker(worker)

    @property
    def _parts(self) -> int:
        """Parts of the work."""
        return 1 + len(self.view.session.workers) + len(self.view.session.op_traces)

    def of_traces(self) -> Iterator[SpanTrack]:
        """Lines of each op trace, and the links over which something was sent in it."""
        session = self.view.session
        by_key = {worker.info.key: worker for worker in session.workers}
        for done, stored in enumerate(session.op_traces, 1 + len(session.workers)):
            self.say(done / self._parts, f"reading {stored.name}")
            yield from self._of_trace(stored, by_key.get(stored.worker))

    def _steps(self) -> Iterator[SpanTrack]:
        steps = self.view.steps
        if steps is None:
            return
        name = self.names.add(SpanName(text=steps.title, category="step"))
        unobserved = name
        if steps.unobserved.any():
            unobserved = self.names.add(
                SpanName(text=f"{steps.title}, and steps that were only counted", category="other")
            )
        info = steps.worker.info
        yield SpanTrack(
            key="steps",
            group=_process(steps.worker),
            title="Steps",
            kind="steps",
            start=steps.starts,
            dur=np.maximum(0, steps.durations),
            name=np.where(steps.unobserved, unobserved, name).astype(np.int32),
            worker=info.key,
        )
        if self.view.anatomy is not None:
            parts = step_parts.build(self.view.anatomy)
            numbers = np.array([self.names.add(one) for one in parts.names], np.int32)
            yield SpanTrack(
                key="parts",
                group=_process(steps.worker),
                title="Parts of the step",
                kind="derived",
                start=parts.start,
                dur=parts.dur,
                name=numbers[parts.name],
                worker=info.key,
            )
        if steps.skipped:
            what = "step that was only counted" if steps.skipped == 1 else "steps that were only counted"
            self.left_out.append(LeftOut(what=what, count=steps.skipped))

    def _of_worker(self, worker: Worker) -> Iterator[SpanTrack]:
        records = worker.with_gaps()
        self._count_undrawn(worker.info, records)
        drawn = _drawn(records, worker.gaps)
        if not len(drawn):
            return
        start, dur = drawn.start_ns, drawn.dur_ns
        names = self._record_names(worker, drawn)
        seen = {t.id: t for t in worker.all(ThreadSeen)}
        ids, at = np.unique(drawn.thread, return_inverse=True)
        busy = np.bincount(at, weights=dur)
        main = np.array([seen[t].main if t in seen else False for t in ids.tolist()])
        for number in np.lexsort((-busy, ids == _GAPS, ~main)).tolist():
            mine = np.flatnonzero(at == number)
            mine = mine[np.lexsort((-dur[mine], start[mine]))]
            which = int(ids[number])
            yield SpanTrack(
                key=f"p{worker.info.pid}.{'rests' if which == _GAPS else f't{which}'}",
                group=_process(worker),
                title="Calls only counted" if which == _GAPS else _thread(seen.get(which), which),
                kind="rests" if which == _GAPS else "thread",
                start=start[mine],
                dur=dur[mine],
                name=names[mine],
                worker=worker.info.key,
                native=seen[which].native if which in seen else 0,
            )

    def _count_undrawn(self, info: WorkerInfo, records: RecordTable) -> None:
        for kind, about in KINDS.items():
            if not about.undrawn:
                continue
            mine = records.kind == kind
            count = int(records.arg[mine].sum()) if kind == Kind.COUNTS else int(mine.sum())
            if count:
                self._leave_out(about.undrawn, count)
        if info.lost_records:
            self._leave_out("records that were lost before they were read", info.lost_records)

    def _leave_out(self, what: str, count: int) -> None:
        before = next((item for item in self.left_out if item.what == what), None)
        if before is not None:
            self.left_out.remove(before)
        self.left_out.append(LeftOut(what=what, count=count + (before.count if before else 0)))

    def _record_names(self, worker: Worker, drawn: RecordTable) -> I32:
        """Name of each drawn record: int32[record]."""
        kind = drawn.kind
        ids = np.where(kind == Kind.TRACE, drawn.arg, drawn.name)
        ids = np.where(np.isin(kind, kinds_with(Trait.UNNAMED)), 0, ids)
        pairs, at = np.unique(np.stack([kind, ids]), axis=1, return_inverse=True)
        known, traced = names_of(worker), {t.id: t for t in worker.all(Traced)}
        numbers = [
            self.names.add(
                self._traced(traced.get(which)) if number == Kind.TRACE else self._named(number, known.get(which))
            )
            for number, which in zip(*pairs.tolist(), strict=True)
        ]
        return np.array(numbers, np.int32)[at.reshape(-1)]

    def _named(self, number: int, name: Name | None) -> SpanName:
        kind = Kind(number)
        about = KINDS[kind]
        text = about.text or kind.name.lower()
        if name is None:
            return SpanName(text=text, category=about.drawn)
        place = (name.file, name.line, "") if name.file else (name.call_file, name.call_line, name.call_function)
        file = self.view.place(*place[:2]).file if place[0] else ""
        return SpanName(
            text=name.text or name.role or text,
            category=about.drawn,
            file=file,
            line=place[1],
            function=place[2],
            ref=f"name:{name.id}",
        )

    def _traced(self, traced: Traced | None) -> SpanName:
        if traced is None:
            return SpanName(text="tracing", category="tracing")
        file = self.view.place(traced.file, traced.line).file if traced.file else ""
        text = f"tracing {traced.function}"
        return SpanName(text=text, category="tracing", file=file, line=traced.line, ref=f"trace:{traced.id}")

    def _of_trace(self, stored: StoredOpTrace, worker: Worker | None) -> Iterator[SpanTrack]:
        try:
            trace = stored.load()
        except DamagedError:
            raise
        except StepscopeError as error:
            self.left_out.append(LeftOut(what=f"op trace {stored.name}: {error}", count=1))
            return
        for dropped in trace.dropped:
            self._leave_out(dropped.reason, dropped.events)
        if not len(trace.events):
            return
        ref = next(
            (
                f"capture:{capture.id}"
                for capture in self.view.session.manifest.captures
                for file in capture.files
                if PurePath(file).name == stored.name
            ),
            "",
        )
        begin, end = int(trace.events.start_ns.min()), int(trace.events.end_ns.max())
        self.traces.append(TraceRange(ref=ref, trace=stored.name, begin_ns=begin, end_ns=end))
        index = GraphIndex(worker) if worker is not None and worker.all(Traced) else None
        names = self._op_names(trace, index)
        sent = sent_tensors.build(trace)
        links = event_links.joined(event_links.build(trace), sent.links)
        if index is not None:
            links = event_links.joined(links, data_links.build(trace, index))
        linked = LinkedEvents(links) if len(links) else None
        if linked is not None:
            self.linked.append(linked)
        lines = [line for line in trace.lines if line.last > line.first and not _is_profilers(trace, line)]
        busy = {line.index: int(trace.events.dur_ns[line.slice].sum()) for line in lines}
        for line in sorted(lines, key=lambda found: (found.plane, found.derived, -busy[found.index])):
            start = trace.events.start_ns[line.slice]
            yield SpanTrack(
                key=f"{stored.name}.{line.index}",
                group=_traced_group(stored, trace, line, worker),
                title=line.name or f"line {line.id}",
                kind="derived" if line.derived else "stream" if line.kind in _STREAMS else "thread",
                start=start,
                dur=np.maximum(0, trace.events.dur_ns[line.slice]),
                name=names[trace.events.meta[line.slice]],
                worker=worker.info.key if worker is not None else "",
                trace=stored.name,
                linked=linked,
                first_event=line.first,
                optrace=trace,
            )
        yield from link_tracks.transfers(stored, sent, self.names, linked)

    def _op_names(self, trace: OpTrace, index: GraphIndex | None) -> I32:
        """Name of each meta: int32[meta]."""
        metas, strings = trace.metas, trace.strings
        found = np.empty(len(metas), np.int32)
        rows = zip(
            metas.name.tolist(), metas.op_name.tolist(), metas.op_type.tolist(), metas.category.tolist(), strict=True
        )
        for i, (name, op, kind, category) in enumerate(rows):
            node = index.node_of(strings[op], strings[kind]) if index is not None and op else NOT_FOUND
            file, line, function = self._op_place(index, node)
            found[i] = self.names.add(
                SpanName(
                    text=strings[name],
                    category=OP_CATEGORY.get(Category(category), "other") if category in _KNOWN else "other",
                    file=file,
                    line=line,
                    function=function,
                    makes=index.table.text(index.table.outputs, node)
                    if index is not None and node != NOT_FOUND
                    else "",
                )
            )
        return found

    def _op_place(self, index: GraphIndex | None, node: int) -> tuple[str, int, str]:
        """File, line and function of the user's code that made a node, or its layer."""
        if index is None or node == NOT_FOUND:
            return ("", 0, "")
        if index.is_gradient(node):
            forward = index.forward_of(node)
            node = forward if forward != NOT_FOUND else node
        place, layer = index.maker_of(node)
        if place is None and layer is not None and layer.line:  # the line that made the layer of the op
            place = (layer.file, layer.function, layer.line)
        if place is None:
            return ("", 0, "")
        return (self.view.place(place[0], place[2]).file, place[2], place[1])


_KNOWN = frozenset(int(category) for category in Category)


def _drawn(records: RecordTable, gaps: Gaps) -> RecordTable:
    """The records that are drawn, and a span for each part of a gap."""
    spans = records.take(np.isin(records.kind, _DRAWN))
    if len(gaps):
        zero = np.zeros(len(gaps), np.int64)
        parts = {"start_ns": gaps.start_ns, "dur_ns": gaps.end_ns - gaps.start_ns, "arg": gaps.calls}
        parts |= {"name": zero, "kind": zero + Kind.REST, "flags": zero, "thread": zero + _GAPS, "seq": zero}
        spans = RecordTable.concat([spans, RecordTable(**parts)])
    return spans.take(spans.dur_ns >= 0)


def _process(worker: Worker) -> str:
    command = " ".join(PurePath(word).name for word in worker.info.command[:2])
    return f"process {worker.info.pid} {command}".strip()


def _thread(seen: ThreadSeen | None, which: int) -> str:
    if seen is None:
        return f"thread {which}"
    name = "main thread" if seen.main else seen.name or f"thread {which}"
    return f"{name} ({seen.native})" if seen.native else name


def _is_profilers(trace: OpTrace, line: Line) -> bool:
    """Whether it shows what the profiler did, and nothing of the job: kineto's recording, its waits for buffers."""
    return trace.planes[line.plane].kind is PlaneKind.METADATA


def _traced_group(stored: StoredOpTrace, trace: OpTrace, line: Line, worker: Worker | None) -> str:
    plane = trace.planes[line.plane].name
    if worker is None:
        return f"{stored.name} {plane}"
    whose = (
        ", traced by" if plane.startswith(_CLUSTER) else " of"
    )  # a device of a cluster may belong to another process
    return f"{stored.name} {plane}{whose} process {worker.info.pid}"
