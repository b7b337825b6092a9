"""Everything that detectors may look at, computed once and on demand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive import anatomy, contention, hot, input_cause, intervals, loop_source, pipeline, retraces, steps
from stepscope.model.events import DatasetMade, Framework, ModelBuilt, Traced
from stepscope.model.finding import Place
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.anatomy import Anatomy
    from stepscope.derive.contention import Contention
    from stepscope.derive.hot import HotSpot, Sample
    from stepscope.derive.input_cause import InputCause
    from stepscope.derive.pipeline import Pipeline
    from stepscope.derive.retraces import RetraceGroup
    from stepscope.derive.steps import Steps
    from stepscope.model.events import Name
    from stepscope.model.session import Session, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTime:
    """Time of the records of one name within the steady steps."""

    name: Name
    calls: int
    total_ns: int


class SessionView:
    """Read-only view of one session. All results are for the steady steps of the thread that makes them."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @cached_property
    def steps(self) -> Steps | None:
        """The steps, None when nothing repeats."""
        found = steps.find(self.session.workers)
        return found if found is not None and found.steady_count > 0 else None

    @property
    def worker(self) -> Worker | None:
        """The process that makes the steps."""
        return self.steps.worker if self.steps else None

    @cached_property
    def names(self) -> dict[int, Name]:
        """Name lines of the worker."""
        return steps.names_of(self.steps.worker) if self.steps else {}

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The input pipeline."""
        return pipeline.build(self.steps) if self.steps else None

    @cached_property
    def anatomy(self) -> Anatomy | None:
        """The split of the mean step."""
        if self.steps is None or self.pipeline is None:
            return None
        return anatomy.build(self.steps, self.pipeline.wait_ns_per_execution or 0.0)

    @property
    def hidden_wait(self) -> bool:
        """The input wait may hide in the compiled step and nothing could show it."""
        if self.steps is None or self.pipeline is None or self.pipeline.windows:
            return False
        if self.steps.kind == Kind.EXECUTION:
            eager = any(m.run_eagerly for m in self.steps.worker.all(ModelBuilt))
            return not eager and self._pulls_inside()
        return self.steps.kind == Kind.FUNCTION and self._iterates_inside()

    def _iterates_inside(self) -> bool:
        """The user made datasets, and nobody pulls from them in Python: the function does."""
        if self.steps is None or self.pipeline is None:
            return False
        made = any(d.file for d in self.steps.worker.all(DatasetMade))
        records = self.steps.worker.records
        pulled = ((records.kind == Kind.NEXT) & (records.thread == self.steps.thread)).any()
        return made and not pulled

    def _pulls_inside(self) -> bool:
        """The steps run in fit, evaluate or predict, whose compiled functions take an iterator rather than a batch."""
        if self.steps is None:
            return False
        records = self.steps.worker.records
        ids = [n.id for n in self.names.values() if n.role in {"fit", "evaluate", "predict"}]
        loops = (records.kind == Kind.LOOP) & (records.thread == self.steps.thread) & np.isin(records.name, ids)
        starts = records.start_ns[loops]
        spans = intervals.merge(starts, starts + records.dur_ns[loops])
        return 2 * intervals.total(intervals.clip(spans, self.steps.windows)) > self.steps.steady_ns

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """Stack samples of the step thread within the steady steps."""
        return hot.samples(self.steps, self.anatomy) if self.steps and self.anatomy else ()

    @property
    def sampled(self) -> bool:
        """There are stack samples of the step thread, at any time of the run."""
        if self.steps is None:
            return False
        records = self.steps.worker.records
        return bool(((records.kind == Kind.SAMPLE) & (records.thread == self.steps.thread)).any())

    @cached_property
    def loop(self) -> tuple[str, str] | None:
        """(file, function) of the user's loop."""
        return hot.loop_function(self.samples, self.steps) if self.steps else None

    def hot_spots(self, *components: str) -> tuple[HotSpot, ...]:
        """Where samples of these components fall."""
        return hot.hot_spots(self.samples, frozenset(components), self.loop)

    @cached_property
    def retraces(self) -> tuple[RetraceGroup, ...]:
        """Repeated traces by cause."""
        return retraces.build(self.steps) if self.steps else ()

    @cached_property
    def contention(self) -> Contention | None:
        """Who else used the CPUs."""
        return contention.build(self.session, self.steps) if self.steps else None

    @cached_property
    def input_cause(self) -> InputCause | None:
        """Why steps wait for their input."""
        return input_cause.build(self)

    @property
    def frameworks(self) -> dict[str, str]:
        """Name to version of all frameworks seen, the step worker's first."""
        workers: Sequence[Worker] = self.session.workers
        found: dict[str, str] = {}
        for worker in [*([self.worker] if self.worker else []), *workers]:
            for event in worker.all(Framework):
                found.setdefault(event.name, event.version)
        return found

    def named_times(self, *kinds: Kind) -> tuple[NamedTime, ...]:
        """Time by name on the step thread within the steady steps, longest first. Counted short calls included."""
        if self.steps is None:
            return ()
        records = self.steps.worker.records
        lo, hi = self.steps.windows
        inside = (records.thread == self.steps.thread) & (records.start_ns < hi[-1])
        inside &= records.start_ns + records.dur_ns > lo[0]
        counted = inside & (records.kind == Kind.COUNTS) & np.isin(records.flags >> 8, kinds)
        whole = inside & np.isin(records.kind, kinds)
        starts = records.start_ns
        time = np.where(counted, records.dur_ns, intervals.clipped_sum(starts, starts + records.dur_ns, (lo, hi)))
        calls = np.where(counted, records.arg, 1)
        rows = []
        for name in np.unique(records.name[counted | whole]):
            mine = (counted | whole) & (records.name == name) & (time > 0)
            if mine.any() and int(name) in self.names:
                row = NamedTime(
                    name=self.names[int(name)], calls=int(calls[mine].sum()), total_ns=int(time[mine].sum())
                )
                rows.append(row)
        return tuple(sorted(rows, key=lambda r: -r.total_ns))

    @cached_property
    def updating_functions(self) -> set[int]:
        """Names of the functions whose graphs change variables: training steps."""
        if self.steps is None:
            return set()
        updating = {(t.file, t.line) for t in self.steps.worker.all(Traced) if t.updates > 0}
        return {n.id for n in self.names.values() if n.file and (n.file, n.line) in updating}

    def fit_place(self) -> Place | None:
        """Where user code calls the Keras loop that the steps run in."""
        for row in self.named_times(Kind.LOOP):
            if row.name.call_file:
                return self.place(row.name.call_file, row.name.call_line, function=row.name.call_function)
        return None

    def source_of(self, file: str) -> str | None:
        """Text of a user file as it was when it ran."""
        return self.session.sources.get(file)

    def role_of_statement(self, spot: HotSpot) -> str:
        """What the loop statement of a hot spot does for the step: feeds, call, uses, other or unknown.

        User code that the call's own statement reaches below the loop makes its arguments: it feeds.
        """
        if self.loop is None or self.steps is None or spot.statement is None:
            return "unknown"
        source = self.source_of(self.loop[0])
        line = self.call_line
        if source is None or line is None:
            return "unknown"
        role = loop_source.role_of_line(source, line, spot.statement.line)
        deeper = (spot.culprit.file, spot.culprit.function) != self.loop
        return "feeds" if role == "call" and deeper else role

    @cached_property
    def call_line(self) -> int | None:
        """Line of the user's loop that makes the step's call: by samples, else where it was first called from."""
        if self.steps is None:
            return None
        lines = [f.line for s in self.samples if s.component == "call" if (f := hot.statement_of(s, self.loop))]
        if lines:
            return max(set(lines), key=lines.count)
        anchor = self.steps.anchors
        return anchor.call_line if anchor is not None and anchor.call_line else None

    def place(self, file: str, line: int, end_line: int = 0, function: str = "") -> Place:
        """A place with its file relative to the job's working directory where it lies below it."""
        cwd = self.session.manifest.cwd
        if cwd and file.startswith(cwd.rstrip("/") + "/"):
            file = os.path.relpath(file, cwd)
        return Place(file=file, line=line, end_line=end_line if end_line > line else None, function=function)

    def dataset_place(self, made: DatasetMade) -> Place | None:
        """Where user code made a dataset."""
        return self.place(made.file, made.line, function=made.function) if made.file else None
