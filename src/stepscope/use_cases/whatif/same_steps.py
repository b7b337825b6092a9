"""The steps of a run that are calls of the same name as the unchanged job's.

Where two calls repeat alike, as those of a generator and of its critic, noise decides which of them is the step: a run
of the unchanged job may choose another than its first run. Both are measured, so that the run can be read by either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.derive.steps import evaluations, step_finder, step_makers
from stepscope.derive.view import SessionView
from stepscope.report.sections import step_summary
from stepscope.store import open_session
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.step_summary import Throughput
    from stepscope.use_cases.whatif.runs import TrialRun

TIED = 0.8
"""Share of the chosen calls' time that other calls must repeat over, to be steps as well. Source: below 0.9 of the best
one, calls do not compete (``derive.steps.choice``); runs differ."""


def read(ran: TrialRun, unchanged: TrialRun, folder: Path) -> TrialRun:
    """A run, read by the unchanged job's steps if it has these, too."""
    if not unchanged.steps or ran.steps == unchanged.steps:
        return ran
    return replace(ran, alike=throughput(folder / ran.session, unchanged.steps))


def throughput(session: Path, title: str) -> Throughput | None:
    """How fast a run was, by steps of this title; None if it has none that could be its steps."""
    try:
        view = SessionView(open_session(session))
    except SessionError:
        return None
    return of_view(view, title)


def of_view(view: SessionView, title: str) -> Throughput | None:
    """The same of an open session."""
    if view.steps is None:
        return None
    least = TIED * view.steps.candidate.cover_ns
    tied = [one for one in view.steps.candidates if step_finder.title_of(one) == title and one.cover_ns >= least]
    if not tied:
        return None
    steps = evaluations.counted(step_finder.build(max(tied, key=lambda one: one.cover_ns)))
    if not steps.steady.any():
        return None
    makers = step_makers.build(replace(steps, candidates=view.steps.candidates))
    return step_summary.throughput(makers)
