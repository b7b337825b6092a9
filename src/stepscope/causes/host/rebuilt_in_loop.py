"""Models, SavedModels, graphs and sessions that are built or loaded again and again within the steady steps.

A build costs the call itself (BUILD), layers that user code makes around it (samples), and the tracing that its result
needs before it runs (first traces of functions that belong to a framework, and the time of a new session's first run
beyond a usual one). The job's first build is not included, because one is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import purpose
from stepscope.derive.numeric import intervals
from stepscope.derive.python import retraces, stack_samples
from stepscope.derive.steps.candidate import TRAIN_ROLES
from stepscope.model.log.events import ModelBuilt, Traced
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.steps.calls import Calls
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import I64

MOST_TRACING = 0.5
"""Share of the tracing from which it belongs to the builds."""
COMPILED = "compiled"
"""Role of builds that are known only by Keras' ``compile``."""
RECOMPILED = "recompiled"
"""The same where it is the same model each time."""


class Builder(Struct, frozen=True, kw_only=True):
    """One line that builds."""

    role: str
    """model, saved_model, graph, session, variables, ``COMPILED`` or ``RECOMPILED``."""
    text: str
    file: str
    line: int
    function: str
    builds: int
    """Number of builds within the steady steps, without the job's first."""
    total_ns: int
    """Time of the calls themselves."""


class Rebuilds(Struct, frozen=True, kw_only=True):
    """Repeated builds, and their time in the steady steps."""

    builders: tuple[Builder, ...]
    """Costliest first."""
    build_ns: int
    around_ns: int
    """Time of layers made in user code, by samples."""
    tracing_ns: int
    """Time of first traces after a build, and of first runs of new sessions beyond a usual run."""
    trains: bool
    """Whether something is trained in the steady steps: a new model for each fold or trial may be intended."""
    alike: bool
    """Whether the graphs that are traced for each build are of one size: the models are equal in structure."""
    lines: tuple[tuple[str, str, int, int], ...]
    """(file, function, first line, last line) of user code that makes layers, most sampled first."""

    @property
    def total_ns(self) -> int:
        """Sum of all parts."""
        return self.build_ns + self.around_ns + self.tracing_ns

    @property
    def trials(self) -> bool:
        """Whether models are only built, to be trained: for folds or trials."""
        return self.trains and all(b.role == COMPILED for b in self.builders)

    @property
    def builds(self) -> int:
        """Number of builds of the line that builds most often."""
        return max(b.builds for b in self.builders)


def build(view: StepsView, min_builds: int, min_compiles: int) -> Rebuilds | None:
    """None if nothing is built again.

    Args:
        view: The session.
        min_builds: Builds of one line besides the first: within the steady steps, compiling from the start.
        min_compiles: Of those that compile, within the steady steps.
    """
    steps = view.steps
    calls = view.calls(Kind.BUILD)
    spans = calls.spans
    builders = [*_called(view, calls, min_builds), *_compiled(view, spans, min_builds, min_compiles)]
    if not builders:
        return None
    lo, hi = steps.windows
    first = int(min(calls.starts.min(initial=hi[-1]), *(m.at for m in steps.worker.all(ModelBuilt)), hi[-1]))
    again = [s for s in view.samples if s.at > first and s.component == "other-python" and s.makes_layers]
    whole = stack_samples.weight_of(view.samples)
    around = stack_samples.weight_of(again) / whole * steps.steady_ns if whole else 0.0
    traced = view.anatomy.ratio("tracing") * steps.steady_ns
    inside = intervals.clip((spans[0][spans[0] > first], spans[1][spans[0] > first]), (lo, hi))
    return Rebuilds(
        builders=tuple(sorted(builders, key=lambda b: (-b.total_ns, -b.builds))),
        build_ns=intervals.total(inside),
        around_ns=round(around),
        tracing_ns=min(_first_traces(steps, spans, first), round(traced)) + _first_runs(view, calls, min_builds),
        trains=_trains(view),
        alike=_alike(steps, first),
        lines=stack_samples.lines_of(again),
    )


def traces_of_trials(view: StepsView) -> bool:
    """Whether most of the tracing within the steps is for models that are built again to be trained."""
    found = build(view, 1, 1)
    tracing = view.anatomy.ratio("tracing") * view.steps.steady_ns
    return found is not None and found.trials and found.tracing_ns >= MOST_TRACING * tracing


def _called(view: StepsView, calls: Calls, min_builds: int) -> list[Builder]:
    """Lines with calls that the probe knows to build."""
    if not len(calls):
        return []
    steady = calls.where(calls.starts > int(calls.starts.min())).begun_in(view.steps.windows)
    found = []
    for number in np.unique(steady.names).tolist():
        mine = steady.named([number])
        name = view.names.get(number)
        if name is not None and len(mine) >= min_builds:
            found.append(
                Builder(
                    role=name.role,
                    text=name.text,
                    file=name.call_file,
                    line=name.call_line,
                    function=name.call_function,
                    builds=len(mine),
                    total_ns=int(mine.durations.sum()),
                )
            )
    return found


def _compiled(view: StepsView, spans: intervals.Intervals, min_builds: int, min_compiles: int) -> list[Builder]:
    """Lines that compile Keras models in the steady steps, outside a load."""
    steps = view.steps
    lo, hi = steps.windows
    at: dict[tuple[str, int], int] = {}
    steady: dict[tuple[str, int], int] = {}
    same: dict[tuple[str, int], int] = {}
    events = [m for m in steps.worker.all(ModelBuilt) if m.file and not _within(m.at, spans)]
    earliest = min((m.at for m in events), default=0)
    for event in events:
        where = event.file, event.line
        if earliest < event.at < hi[-1]:
            at[where] = at.get(where, 0) + 1
            steady[where] = steady.get(where, 0) + (event.at >= lo[0])
            same[where] = same.get(where, 0) + (event.at >= lo[0] and event.compiles > 1)
    return [
        Builder(
            role=RECOMPILED if 2 * same[file, line] > count else COMPILED,
            text="compile",
            file=file,
            line=line,
            function="",
            builds=count,
            total_ns=0,
        )
        for (file, line), count in steady.items()
        if count >= min_compiles and at[file, line] >= min_builds
    ]


def _within(at: int, spans: intervals.Intervals) -> bool:
    index = int(np.searchsorted(spans[0], at, side="right")) - 1
    return index >= 0 and at < spans[1][index]


def _first_traces(steps: Steps, spans: intervals.Intervals, first: int) -> int:
    """Time in first traces of frameworks' functions after the first build, outside builds."""
    records = steps.worker.records
    events = {t.id: t for t in steps.worker.all(Traced) if t.ordinal == 1 and t.owner != "user"}
    mine = (records.kind == Kind.TRACE) & (records.thread == steps.thread) & (records.start_ns > first)
    rows = np.array([r for r in np.flatnonzero(mine) if int(records.arg[r]) in events], np.int64)
    if len(rows) == 0:
        return 0
    traced = intervals.clip(intervals.merge(*retraces.widened(steps, rows)), steps.windows)
    return intervals.total(traced) - intervals.total(intervals.clip(traced, spans))


def _alike(steps: Steps, first: int) -> bool:
    """Whether each function of a framework has one size in all of its first traces since the first build."""
    sizes: dict[str, set[tuple[int, int]]] = {}
    for trace in steps.worker.all(Traced):
        if trace.ordinal == 1 and trace.owner != "user" and trace.at > first:
            sizes.setdefault(trace.function, set()).add((trace.nodes, trace.variables))
    return all(len(found) == 1 for found in sizes.values())


def _first_runs(view: StepsView, calls: Calls, min_builds: int) -> int:
    """Time of the first run of each new session beyond the usual run of its fetches or model, if there is one."""
    made = calls.named(n.id for n in view.names.values() if n.role == "session").starts
    runs = view.calls(*kinds_with(Trait.SESSION))
    if len(made) < min_builds or not len(runs):
        return 0
    extra = 0
    for name in np.unique(runs.names).tolist():
        mine = runs.named([name])
        fresh = np.append(True, np.diff(np.searchsorted(made, mine.starts, side="right")) > 0)
        if fresh.all():
            continue
        usual = int(np.median(mine.durations[~fresh]))
        later = fresh & (np.cumsum(fresh) > 1)
        extra += int(np.maximum(mine.where(later).begun_in(view.steps.windows).durations - usual, 0).sum())
    return extra


def _trains(view: StepsView) -> bool:
    steps = view.steps
    records = steps.worker.records
    lo, hi = steps.windows
    mine = (records.start_ns >= lo[0]) & (records.start_ns < hi[-1]) & ((records.flags & Flag.RAISED) == 0)
    if (mine & (records.kind == Kind.APPLY)).any():
        return True
    roles = {n.id for n in view.names.values() if n.role in TRAIN_ROLES} | view.get(purpose.updating_functions)
    ids: I64 = np.array(sorted(roles), np.int64)
    kinds = mine & np.isin(records.kind, kinds_with(Trait.TRAINER))
    return bool(np.isin(records.name[kinds], ids).any())
