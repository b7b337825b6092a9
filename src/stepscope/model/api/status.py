"""The live status of a job, as its sidecar publishes it and ``ps`` and ``top`` read it (schema ``stepscope.live/1``).

Additions only. What is read may have been written by another user: bounded, and shown without control characters.
"""

from __future__ import annotations

import msgspec

SCHEMA = "stepscope.live/1"
MAX_BYTES = 1 << 20


class LiveShare(msgspec.Struct, frozen=True, kw_only=True):
    """A component's share of the recent steps."""

    component: str
    ratio: float


class LiveFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What costs most at present."""

    code: str
    title: str
    severity: str
    cost_ratio: float
    place: str = ""
    """FILE:LINE FUNCTION, where there is one."""


class LiveTask(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the job does again and again; times and rate over the last minute."""

    kind: str
    name: str
    pid: int
    count: int
    """Since the job's start."""
    per_s: float | None
    mean_ns: int
    p95_ns: int


class LiveMaker(msgspec.Struct, frozen=True, kw_only=True):
    """Calls at one place that are steps of one kind (``StepMaker`` of the report); rates over the last minute."""

    kind: str
    """training | evaluation | prediction | step | call"""
    title: str
    place: str = ""
    """FILE:LINE, where there is one."""
    pid: int
    threads: int = 1
    count: int
    """Since the job's start."""
    rate: float | None = None
    samples_per_s: float | None = None


class LiveCapture(msgspec.Struct, frozen=True, kw_only=True):
    """A capture that was asked for, as it stands."""

    request: str
    """Id of the request; the code of the detector that asked."""
    asked_by: str = ""
    """user | schedule | compute (steps that do, where nobody asked) | the code of a detector"""
    state: str = "waiting"
    """waiting | tracing | done | failed"""
    text: str = ""
    """Why it waits or failed."""
    title: str = ""
    """What its steps are."""
    number: int = 0
    """How many this request has had, this one included."""
    steps: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    recorded_ns: int = 0
    cost_ns: int = 0
    bytes: int = 0
    files: tuple[str, ...] = ()
    """Below the session."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One job at one moment. Rates are over the last seconds, shares over about a minute; None: not known (yet)."""

    schema: str = SCHEMA
    pid: int = 0
    start_ticks: int = 0
    uid: int = 0
    mode: str = "run"
    """run | enable"""
    command: tuple[str, ...] = ()
    cwd: str = ""
    framework: str = ""
    session: str = ""
    state: str = "starting"
    """starting | running | ending"""
    started_unix_s: float = 0.0
    updated_unix_s: float = 0.0
    processes: int = 0
    """Measured ones that live."""
    steps: int = 0
    """Since the job's start, or that of a sidecar that had to be started again; 0 while nothing repeats."""
    step_title: str = ""
    """What a step is."""
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    anatomy: tuple[LiveShare, ...] = ()
    top: LiveFinding | None = None
    findings: int = 0
    analysed_unix_s: float = 0.0
    """When anatomy and findings were computed; 0: not yet."""
    analysis_every_s: float = 0.0
    """How often they are, so that it costs a thousandth of one core."""
    undecided: tuple[str, ...] = ()
    """Codes of detectors that could not look."""
    tasks: tuple[LiveTask, ...] = ()
    makers: tuple[LiveMaker, ...] = ()
    """All that makes steps, the main one first; ``steps`` are its."""
    records: int = 0
    sidecar_pid: int = 0
    sidecar_core_ratio: float = 0.0
    session_bytes: int = 0
    bytes_per_hour: float | None = None
    problems: tuple[str, ...] = ()
    captures: tuple[LiveCapture, ...] = ()
    """The newest, oldest first."""
    captures_ratio: float = 0.0
    """What captures have cost so far, as a share of the job's time."""
