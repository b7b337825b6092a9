"""The job and session lists of the REST interface (docs/rest.md). Additions only.

Strings that name files are UTF-8; invalid parts of a path are replacement characters.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from stepscope.model.api.status import LiveCapture, LiveFinding, Status
from stepscope.model.report.overhead import Overhead
from stepscope.model.report.report import Component, SessionSummary, StageShare
from stepscope.model.report.slow_steps import SlowStep
from stepscope.model.report.step_detail import StepDetail
from stepscope.model.report.task import Task
from stepscope.model.session.session import CaptureInfo
from stepscope.tables.findings import Finding


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A running job that is measured."""

    pid: int
    name: str
    """Name of the script or the module."""
    user: str
    state: str
    """State: starting | running | ending | silent: its sidecar no longer reports"""
    session: str
    """Key of its session; "" if there is none yet."""
    status: Status
    arguments: str = ""
    """Arguments of the script."""
    role: str = ""
    """Purpose of its steps: training, evaluation, prediction, or "" if not known."""


class SessionLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user has written to a session."""

    name: Annotated[str, Meta(max_length=200)] = ""
    """Name to show instead of the file's; "": the file's."""
    tags: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=50)], ...], Meta(max_length=20)] = ()
    note: Annotated[str, Meta(max_length=4_000)] = ""


class SessionBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list."""

    key: str
    """Key in addresses, which stays the same as long as the session is not moved."""
    name: str
    path: str
    state: str
    """State: running | finished | recovered | unfinished: no process is writing it | damaged"""
    packed: bool = False
    command: tuple[str, ...] = ()
    framework: str = ""
    mode: str = ""
    """Mode: run | enable | attach | import"""
    host: str = ""
    started_unix_s: float = 0.0
    wall_ns: int = 0
    exit_code: int | None = None
    steps: int = 0
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    findings: int | None = None
    """Number of findings above information; None: its report has not been written yet."""
    top: LiveFinding | None = None
    pid: int | None = None
    """Process id of the job, while it runs."""
    problem: str = ""
    """Reason why nothing more is known."""
    id: str = ""
    """Id, which stays the same when the session is moved or packed; "" if it cannot be read."""
    label: SessionLabel = SessionLabel()
    arguments: str = ""
    """Arguments of the script, which tell one script's runs apart."""
    role: str = ""
    """Purpose of its steps: training, evaluation, prediction, or "" if not known; with the task in a cluster:
    "training, worker 0"."""


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was deleted."""

    key: str


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Running jobs."""

    items: tuple[Job, ...]
    total: int
    offset: int
    next_offset: int | None


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, newest first."""

    items: tuple[SessionBrief, ...]
    total: int
    offset: int
    next_offset: int | None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of a session, by total time."""

    items: tuple[Task, ...]
    total: int
    offset: int
    next_offset: int | None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step. Times are nanoseconds since session start."""

    index: int
    start_ns: int
    dur_ns: int
    call_ns: int
    """Time of the compiled call in it."""
    samples: int
    """Number of samples; 0: unknown."""
    steady: bool
    """Flag: the step counts, being neither warm-up nor pause."""


class StepPage(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a session by time."""

    title: str
    """Description of a step."""
    counted_only: int
    """Number of further steps that were counted but not timed."""
    items: tuple[Step, ...]
    total: int
    offset: int
    next_offset: int | None


class StepDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a session, each compared with the median step."""

    items: tuple[StepDetail, ...]
    in_words: tuple[SlowStep, ...]
    """The same in words."""


class FindingList(msgspec.Struct, frozen=True, kw_only=True):
    """Findings, costliest first."""

    items: tuple[Finding, ...]
    total: int


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the report."""

    label: str
    text: str


class SessionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A session as shown in its overview."""

    brief: SessionBrief
    summary: SessionSummary
    overhead: Overhead
    anatomy: tuple[Component, ...]
    findings: int
    tasks: int
    captures: int
    checked: dict[str, int]
    """Number of detectors by outcome."""


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """The eight pipeline stages, and the split of the mean step."""

    stages: tuple[StageShare, ...]
    anatomy: tuple[Component, ...]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of numbers. Keys: docs/report-schema.md; times are seconds since session start."""

    columns: dict[str, tuple[float, ...]]


class CaptureList(msgspec.Struct, frozen=True, kw_only=True):
    """Captures: those in the session, and the state of those requested from a running job."""

    stored: tuple[CaptureInfo, ...]
    live: tuple[LiveCapture, ...] = ()


class Flame(msgspec.Struct, frozen=True, kw_only=True):
    """Sampled stacks of one event."""

    event: str
    unit: str
    weight: float
    """Sum of all samples, in ``unit``."""
    samples: int
    lost: int


class FlameList(msgspec.Struct, frozen=True, kw_only=True):
    """Events whose stacks are in the session."""

    items: tuple[Flame, ...]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of one of the user's files, as it was when the job ran."""

    file: str
    first: int
    """Number of the first line."""
    lines: tuple[str, ...]
    total: int
    """Number of lines in the file."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A capture that was requested from a job."""

    request: str
    pid: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """State of the server."""

    status: str
    version: str
    api: int


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Reason why there is no answer (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
