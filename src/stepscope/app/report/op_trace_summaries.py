"""Contents of a session's op traces, for the report: planes, events, steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.optrace.steps import traced_steps
from stepscope.errors import DamagedError, StepscopeError
from stepscope.model.report.finding import Diagnostic
from stepscope.model.report.op_summary import OpTraceSteps, OpTraceSummary, PlaneSummary
from stepscope.model.session.optrace import PlaneKind

if TYPE_CHECKING:
    from stepscope.model.session.optrace import OpTrace
    from stepscope.model.session.session import Session

DAMAGED = "DX121"
_WITHOUT_EVENTS = frozenset({PlaneKind.METADATA, PlaneKind.ENVIRONMENT})
"""Planes that never have events."""


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


def summary(name: str, trace: OpTrace) -> OpTraceSummary:
    """The summary of one op trace.

    Raises:
        FormatError, SessionError: its stats cannot be read.
    """
    planes = [plane for plane in trace.planes if plane.kind not in _WITHOUT_EVENTS]
    return OpTraceSummary(
        name=name,
        file=trace.source.name,
        format=trace.source.format,
        events=len(trace.events),
        left_out={dropped.reason: dropped.events for dropped in trace.dropped},
        planes=tuple(PlaneSummary(name=p.name, kind=p.kind.value, events=p.events) for p in planes),
        steps=tuple(_steps(steps) for steps in traced_steps.find(trace)),
    )


def _steps(steps: traced_steps.Steps) -> OpTraceSteps:
    return OpTraceSteps(
        how=steps.how.value,
        name=steps.name,
        count=len(steps),
        median_ns=int(np.median(steps.dur_ns)),
        min_ns=int(steps.dur_ns.min()),
        max_ns=int(steps.dur_ns.max()),
    )
