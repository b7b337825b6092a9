"""Queries on an opened session: one function for each resource of the REST interface."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING

from stepscope.model.api.rest_api import (
    CaptureList,
    FindingList,
    Flame,
    FlameList,
    Series,
    SessionDetail,
    Source,
    Stages,
    Step,
    StepDetails,
    StepPage,
    TaskPage,
)
from stepscope.server.session_catalogue import shown
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from stepscope.model.api.rest_api import SessionBrief
    from stepscope.model.report.op_table import OpTable
    from stepscope.report.flame.graph import Graph
    from stepscope.server.open_sessions import OpenSession
    from stepscope.server.session_catalogue import ListedSession
    from stepscope.use_cases.flame import Window

    T = TypeVar("T")

RESOURCES = ("res_t", "res:")
"""Keys of the series that stand on the axis of the host's samples."""


def detail(opened: OpenSession, brief: SessionBrief) -> SessionDetail:
    """The overview."""
    report = opened.report
    return SessionDetail(
        brief=brief,
        summary=report.session,
        overhead=report.overhead,
        anatomy=report.anatomy,
        findings=len(report.findings),
        tasks=len(report.tasks),
        captures=len(opened.manifest.captures),
        checked=dict(sorted(Counter(c.outcome for c in report.checked).items())),
    )


def findings(opened: OpenSession) -> FindingList:
    """The findings."""
    found = opened.report.findings
    return FindingList(items=found, total=len(found))


def tasks(opened: OpenSession, offset: int, limit: int) -> TaskPage:
    """A page of tasks."""
    every = opened.report.tasks
    return TaskPage(
        items=every[offset : offset + limit],
        total=len(every),
        offset=offset,
        next_offset=next_offset(len(every), offset, limit),
    )


def steps(opened: OpenSession, offset: int, limit: int) -> StepPage:
    """A page of steps."""
    found = opened.view.steps
    if found is None:
        return StepPage(title="", counted_only=0, items=(), total=0, offset=offset, next_offset=None)
    total = len(found)
    rows = range(offset, min(offset + limit, total))
    durations = found.durations
    return StepPage(
        title=found.title,
        counted_only=found.skipped,
        items=tuple(
            Step(
                index=i,
                start_ns=int(found.starts[i]),
                dur_ns=int(durations[i]),
                call_ns=int(found.call_ends[i] - found.starts[i]),
                samples=int(found.samples[i]),
                steady=bool(found.steady[i]),
            )
            for i in rows
        ),
        total=total,
        offset=offset,
        next_offset=next_offset(total, offset, limit),
    )


def step(opened: OpenSession, which: str) -> StepDetails:
    """Steps compared with the median step: a number, ``slowest`` or ``slowest:COUNT``.

    Raises:
        UsageError: it names no step.
    """
    from stepscope.report.sections import step_detail

    items = step_detail.of_session(opened.view, which)
    return StepDetails(items=items, in_words=tuple(step_detail.in_words(one) for one in items))


def next_offset(total: int, offset: int, limit: int) -> int | None:
    """Start of the next page; None on the last one."""
    return offset + limit if offset + limit < total else None


def page(items: Sequence[T], offset: int, limit: int) -> tuple[T, ...]:
    """The items of one page."""
    return tuple(items[offset : offset + limit])


def stages(opened: OpenSession) -> Stages:
    """The split of the step."""
    return Stages(stages=opened.report.stages, anatomy=opened.report.anatomy)


def resources(opened: OpenSession) -> Series:
    """Series of resources on one time axis, ``res_t``."""
    return Series(columns={k: v for k, v in sorted(opened.report.series.items()) if k.startswith(RESOURCES)})


def series(opened: OpenSession) -> Series:
    """All series of the report."""
    return Series(columns=dict(sorted(opened.report.series.items())))


def ops(opened: OpenSession) -> OpTable | None:
    """The table of ops; None without an op trace."""
    return opened.report.ops


def captures(opened: OpenSession, entry: ListedSession) -> CaptureList:
    """Captures, stored and live."""
    return CaptureList(stored=opened.manifest.captures, live=entry.job.status.captures if entry.job is not None else ())


def flames(opened: OpenSession) -> FlameList:
    """Events that have stacks."""
    from stepscope.derive.stacks import session_stacks

    profiles = session_stacks.profiles(opened.session)
    return FlameList(
        items=tuple(
            Flame(event=p.event, unit=p.unit, weight=p.total, samples=int(p.samples.count.sum()), lost=p.lost)
            for p in profiles
        )
    )


def flame(opened: OpenSession, event: str, window: Window | None) -> Graph:
    """The graph of one event.

    Raises:
        UsageError: the session has no such event, or no stacks at all.
    """
    from stepscope.use_cases import flame as use_case

    return use_case.of_session(opened.session, opened.path, event, window).graph


def source(opened: OpenSession, file: str, first: int, limit: int) -> Source:
    """Lines of a copy of one of the user's files, by the name that places give it.

    None for a session without copies: the job still runs, or copies were disabled.

    Raises:
        UsageError: the session holds copies, but not of this file.
    """
    held = opened.session.sources
    if not held:
        return Source(file=file, first=first, lines=(), total=0)
    cwd = opened.manifest.cwd
    path = next((p for p in (file, posixpath.normpath(posixpath.join(cwd, file))) if p in held), None)
    if path is None:
        raise UsageError(f"{file}: the session has no copy of this file; expected a file that a finding names")
    lines = held[path].splitlines()
    return Source(file=file, first=first, lines=tuple(lines[first - 1 : first - 1 + limit]), total=len(lines))


def file_name(opened: OpenSession) -> str:
    """File name for a download of the session, in plain ASCII."""
    name = shown(opened.path.name)
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def report(opened: OpenSession, form: str) -> bytes:
    """The report as json, html, md or text."""
    from stepscope.report import html, json_report, markdown, text

    found = opened.report
    if form == "json":
        return json_report.encode(found)
    if form == "text":
        return text.render(found, session_path=shown(opened.path)).encode("utf-8", "replace")
    render = html.render if form == "html" else markdown.render
    return render(found, sources=opened.session.sources).encode("utf-8", "replace")
