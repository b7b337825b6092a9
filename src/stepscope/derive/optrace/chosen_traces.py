"""Chooses the op trace that the report is about (``main``, ``shown``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.steps import step_parts
from stepscope.derive.optrace.steps.traced_steps import StepKind
from stepscope.derive.optrace.trace_view import OpView
from stepscope.derive.steps import anatomy, step_work
from stepscope.derive.steps.steps import names_of
from stepscope.model.report.components import COMPONENTS
from stepscope.tables.errors import DamagedError, SessionError
from stepscope.tables.optrace import LineKind
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import CaptureInfo, Session, StoredOpTrace


XSPACE = "xplane"
"""Format of traces of TensorFlow, JAX and XLA."""
FIRST_LOOK = "first-look"
"""Requester of a capture that a process took by itself (``agent.capture.first_look``), and of those of later phases."""
MOST_RATIO = 0.5
"""Share of a recording that usual steps of the job take, from which the traced calls are parts of these steps."""


class ChosenTraces(Struct, frozen=True, kw_only=True):
    """The op traces that could be read, and the names of those that could not."""

    views: tuple[OpView, ...]
    """Views sorted by name."""
    others: tuple[str, ...] = ()
    """Names of traces of another kind of step, such as an evaluation's in a training job: joined to no step."""
    problems: tuple[str, ...] = ()
    elsewhere: tuple[StoredOpTrace, ...] = ()
    """Traces of other processes, newest first and not read, if the process that makes the steps has none."""

    @property
    def main(self) -> OpView | None:
        """The trace with the most steps, those that a program marked first, the newest of equals, of imported files the
        last by name; None if none shows any.
        """
        seen = (view for view in self.views if view.shows_steps)
        return max(seen, key=lambda v: (v.periods.how is StepKind.MARKER, len(v.periods), *_order(v)), default=None)

    @property
    def shown(self) -> OpView | None:
        """The trace that the report is about: ``main``, else the largest."""
        return self.main or max(self.views, key=lambda v: (len(v.trace.events), *_order(v)), default=None)


def _order(view: OpView) -> tuple[str, str]:
    """The order of equal traces: that of capture; of files that of their names, not that in which they were given."""
    return "" if view.ref else view.trace.source.name, view.name


def build(session: Session, steps: Steps | None) -> ChosenTraces:
    """The op traces of the process that makes the steps; all of the session's if no step was measured."""
    level_0 = _level_0(steps) if steps is not None else None
    refs = {
        name.rpartition("/")[2]: f"capture:{capture.id}"
        for capture in session.manifest.captures
        for name in capture.files
    }
    others = _of_other_steps(session, steps) if steps is not None else frozenset()
    known = [stored for stored in session.op_traces if stored.name not in others]
    mine = [stored for stored in known if steps is None or stored.worker == steps.worker.info.key]
    views, problems = [], []
    for stored in mine:
        try:
            trace = stored.load()
        except DamagedError:
            raise
        except SessionError as error:
            problems.append(str(error))
            continue
        views.append(OpView(trace, stored.name, level_0, ref=refs.get(stored.name, ""), worker=stored.worker))
    _join(views)
    return ChosenTraces(
        views=tuple(views),
        others=tuple(sorted(others)),
        problems=tuple(problems),
        elsewhere=() if mine else tuple(sorted(known, key=lambda stored: stored.name, reverse=True)),
    )


def _join(views: list[OpView]) -> None:
    """Tell each trace of those that other profilers recorded of its process meanwhile."""
    for view in views:
        view.together = tuple(other for other in views if other is not view and _same_process(view, other))


def _same_process(one: OpView, other: OpView) -> bool:
    """Whether two traces overlap and show a thread in common. Only XSpaces number threads as no other process of the
    host does.
    """
    traces = one.trace, other.trace
    if any(trace.source.format != XSPACE or not len(trace.events) for trace in traces):
        return False
    begin = max(int(trace.events.start_ns.min()) for trace in traces)
    end = min(int(trace.events.end_ns.max()) for trace in traces)
    mine, others = ({line.id for line in trace.lines_of(LineKind.THREAD) if line.id} for trace in traces)
    same_host = one.trace.source.hostnames == other.trace.source.hostnames
    return begin < end and same_host and bool(mine & others)


def _of_other_steps(session: Session, steps: Steps) -> frozenset[str]:
    """Names of the traces whose steps are made by other calls than the session's steps."""
    call, names = steps.call, names_of(steps.worker)
    if call is None:
        return frozenset()
    same = {
        name.id
        for name in names.values()
        if (name.text, name.file, name.line, name.role) == (call.text, call.file, call.line, call.role)
    }
    found = set()
    for capture in session.manifest.captures:
        known = [(kind, name) for kind, name in capture.anchors if name in names]
        if capture.worker == steps.worker.info.key and (capture.work or _unasked(capture)) and known:
            mine = any(kind == steps.kind and name in same for kind, name in known)
            if not mine and not (
                _during(capture, steps) if _unasked(capture) else capture.work == step_work.work(steps)
            ):
                found |= {name.rpartition("/")[2] for name in capture.files}
    return frozenset(found)


def _unasked(capture: CaptureInfo) -> bool:
    """Whether the job took it by itself, or its sidecar of a later phase: less was known of the steps than is now."""
    return capture.asked_by == FIRST_LOOK


def _during(capture: CaptureInfo, steps: Steps) -> bool:
    """Whether the job made its usual steps for most of it: the traced calls then belong to them.

    A recording ends when it is noticed that other calls have begun.
    """
    end_ns = capture.at_ns + capture.recorded_ns
    within = np.minimum(steps.ends, end_ns) - np.maximum(steps.starts, capture.at_ns)
    covered = int(np.maximum(within, 0)[steps.recurring].sum())
    return covered >= MOST_RATIO * max(1, capture.recorded_ns)


def _level_0(steps: Steps) -> dict[str, Intervals]:
    found = {about.part: anatomy.when(steps, name) for name, about in COMPONENTS.items() if about.part}
    starts, ends, _ = anatomy.spans_of(steps, Kind.SESSION_RUN)
    found[step_parts.SESSION_RUN] = intervals.merge(starts, ends)
    return found
