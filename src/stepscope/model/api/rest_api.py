"""What the hub lists and the REST interface answers (docs/rest.md). Additions only.

Texts that name files are shown as UTF-8: a path that is none is shown with replacement characters.
"""

from __future__ import annotations

import msgspec

from stepscope.model.api.status import LiveCapture, LiveFinding, Status
from stepscope.model.report.finding import Component, Finding, SessionSummary, StageShare, Task
from stepscope.model.report.overhead import Overhead
from stepscope.model.session.session import CaptureInfo


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A running job that is measured."""

    pid: int
    name: str
    """What runs: the script or the module."""
    user: str
    state: str
    """starting | running | ending | silent: its sidecar says nothing any more"""
    session: str
    """Key of its session; "" where there is none yet."""
    status: Status


class SessionBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list."""

    key: str
    """Its name in addresses: the same as long as it lies where it lies."""
    name: str
    path: str
    state: str
    """running | finished | recovered | unfinished: nobody is at work on it | damaged"""
    packed: bool = False
    command: tuple[str, ...] = ()
    framework: str = ""
    mode: str = ""
    """run | enable | attach | import"""
    host: str = ""
    started_unix_s: float = 0.0
    wall_ns: int = 0
    exit_code: int | None = None
    steps: int = 0
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    findings: int | None = None
    """None: its report has not been written yet."""
    top: LiveFinding | None = None
    pid: int | None = None
    """Of the job, while it runs."""
    problem: str = ""
    """Why nothing more is known of it."""


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Running jobs."""

    items: tuple[Job, ...]
    total: int
    offset: int
    next_offset: int | None


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, the newest first."""

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
    """One step. Times are nanoseconds since session start."""

    index: int
    start_ns: int
    dur_ns: int
    call_ns: int
    """The compiled call in it."""
    samples: int
    """0: not known."""
    steady: bool
    """Whether it counts: no warm-up, no pause."""


class StepPage(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a session by time."""

    title: str
    """What a step is."""
    counted_only: int
    """Steps beyond these that were counted and not timed."""
    items: tuple[Step, ...]
    total: int
    offset: int
    next_offset: int | None


class FindingList(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, the costliest first."""

    items: tuple[Finding, ...]
    total: int


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the report."""

    label: str
    text: str


class ImportedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the traced steps."""

    part: str
    word: str
    """What it is called."""
    ratio: float


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What other tools recorded: nothing was measured."""

    lines: tuple[Said, ...]
    """Files, steps, planes, as the report's head says them."""
    steps: str
    """Of what the parts are: "152 ms in the mean of 5 traced steps"; empty where no op was seen."""
    parts: tuple[ImportedPart, ...] = ()
    """The largest first."""


class SessionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A session as its overview shows it."""

    brief: SessionBrief
    summary: SessionSummary
    overhead: Overhead
    anatomy: tuple[Component, ...]
    findings: int
    tasks: int
    captures: int
    checked: dict[str, int]
    """Detectors by outcome."""
    diagnostics: tuple[str, ...]
    checked_said: tuple[str, ...] = ()
    """What became of the detectors, as the report says it: could not look stands apart from not applicable."""
    nothing_said: str = ""
    """What stands where there is no finding: that nothing was found, or why nobody could look."""
    imported: Imported | None = None
    """What other tools' files hold; null for a measured job."""


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """The eight pipeline stages, and the split of the mean step."""

    stages: tuple[StageShare, ...]
    anatomy: tuple[Component, ...]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of numbers. Keys: docs/report-schema.md; times are seconds since session start."""

    columns: dict[str, tuple[float, ...]]


class CaptureList(msgspec.Struct, frozen=True, kw_only=True):
    """Captures: those that the session holds, and what becomes of those that a running job was asked for."""

    stored: tuple[CaptureInfo, ...]
    live: tuple[LiveCapture, ...] = ()


class Flame(msgspec.Struct, frozen=True, kw_only=True):
    """Sampled stacks of one event."""

    event: str
    unit: str
    weight: float
    """The sum of all samples, in ``unit``."""
    samples: int
    lost: int


class FlameList(msgspec.Struct, frozen=True, kw_only=True):
    """Events whose stacks the session holds."""

    items: tuple[Flame, ...]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of one of the user's files, as it was when the job ran."""

    file: str
    first: int
    """Number of the first line."""
    lines: tuple[str, ...]
    total: int
    """Lines of the file."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A capture that a job was asked for."""

    request: str
    pid: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The server."""

    status: str
    version: str
    api: int


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
