"""Contents of a session's op traces, for the report: planes, events, steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.optrace.device import device_work
from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.trace_view import OpView
from stepscope.model.report.op_summary import OpTraceSteps, OpTraceSummary, PlaneSummary, StackFile
from stepscope.tables.errors import DamagedError, StepscopeError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.optrace import PlaneKind

if TYPE_CHECKING:
    from stepscope.model.session.session import Session
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.stacks import StackProfile

DAMAGED = "DX121"
_WITHOUT_EVENTS = frozenset({PlaneKind.METADATA, PlaneKind.ENVIRONMENT})
"""Planes that never have events."""
_INNER = "/host:__"
"""First letters of the names of planes in which a profiler keeps internal tables."""


def build(session: Session) -> tuple[tuple[OpTraceSummary, ...], tuple[Diagnostic, ...]]:
    """Summaries of all op traces of the session, and what could not be read, was repaired or omitted."""
    found: list[OpTraceSummary] = []
    told: list[Diagnostic] = []
    for stored in session.op_traces:
        try:
            trace = stored.load()
            found.append(summary(stored.name, trace))
        except DamagedError:
            raise
        except StepscopeError as error:
            told.append(Diagnostic(code=DAMAGED, text=str(error)))
            continue
        told += trace.diagnostics
    return tuple(found), tuple(told)


def stack_files(session: Session) -> tuple[StackFile, ...]:
    """What an imported session holds of sampled stacks."""
    return tuple(map(stack_file, session.stacks)) if session.manifest.mode == "import" else ()


def stack_file(profile: StackProfile) -> StackFile:
    """What a stack file holds of one event."""
    return StackFile(event=profile.event, rows=len(profile.samples), total=profile.total, unit=profile.unit)


def summary(name: str, trace: OpTrace) -> OpTraceSummary:
    """The summary of one op trace.

    Raises:
        FormatError, SessionError: its stats cannot be read.
    """
    planes = [p for p in trace.planes if p.kind not in _WITHOUT_EVENTS and (p.events or not p.name.startswith(_INNER))]
    return OpTraceSummary(
        name=name,
        file=trace.source.name,
        format=trace.source.format,
        events=len(trace.events),
        left_out={dropped.reason: dropped.events for dropped in trace.dropped},
        planes=tuple(PlaneSummary(name=p.name, kind=p.kind.value, events=p.events) for p in planes),
        steps=_all_steps(trace),
    )


def _all_steps(trace: OpTrace) -> tuple[OpTraceSteps, ...]:
    """All ways in which it shows steps; the first by the work that was queued, if the program is ahead of it."""
    found = [_steps(steps) for steps in traced_steps.find(trace)]
    if found and (periods := OpView(trace).periods).by_device:
        found[0] = OpTraceSteps(
            how=BY_DEVICE if device_work.captured(trace) else BY_HOST,
            name=periods.name,
            count=len(periods),
            median_ns=int(np.median(periods.dur_ns)),
            min_ns=int(periods.dur_ns.min()),
            max_ns=int(periods.dur_ns.max()),
        )
    return tuple(found)


BY_DEVICE = "device work of"
"""How steps are said to be recognised whose times are those of their work on the device."""


BY_HOST = "queued work of"
"""The same where threads of the host do the work."""


def _steps(steps: traced_steps.Steps) -> OpTraceSteps:
    return OpTraceSteps(
        how=steps.how.value,
        name=steps.name,
        count=len(steps),
        median_ns=int(np.median(steps.dur_ns)),
        min_ns=int(steps.dur_ns.min()),
        max_ns=int(steps.dur_ns.max()),
    )
