"""The live status of a job, published by its sidecar and read by ``ps`` and ``top`` (schema ``stepscope.live/1``).

Additions only. It may have been written by another user: sizes are bounded, and control characters are removed for
display.
"""

from __future__ import annotations

import msgspec

from stepscope.tables.hang import Hang

SCHEMA = "stepscope.live/1"
MAX_BYTES = 1 << 20


class LiveShare(msgspec.Struct, frozen=True, kw_only=True):
    """A component's share of the recent steps."""

    component: str
    ratio: float


class LiveFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The currently costliest cause."""

    code: str
    title: str
    severity: str
    cost_ratio: float
    place: str = ""
    """Place FILE:LINE FUNCTION, if there is one."""


class LiveTask(msgspec.Struct, frozen=True, kw_only=True):
    """A repeated activity of the job; times and rate over the last minute."""

    kind: str
    name: str
    pid: int
    count: int
    """Number of calls since the job's start."""
    per_s: float | None
    mean_ns: int
    p95_ns: int


class LiveMaker(msgspec.Struct, frozen=True, kw_only=True):
    """Calls at one place that are steps of one kind (``StepMaker`` of the report); rates over the last minute."""

    kind: str
    """Kind: training | evaluation | prediction | step | call"""
    title: str
    place: str = ""
    """Place FILE:LINE, if there is one."""
    pid: int
    threads: int = 1
    count: int
    """Number of calls since the job's start."""
    rate: float | None = None
    samples_per_s: float | None = None


class LiveProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the running fit is."""

    epoch: int
    """Number of the running epoch, from 1."""
    epochs: int
    steps: int
    """Batches so far, of all its epochs."""
    steps_total: int
    ratio: float
    left_s: float | None = None
    """Time that the rest takes, by the mean so far; null: not known yet."""


class LiveGpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU of the job's host, by the sampler's last look; null: the card does not tell."""

    index: int
    name: str
    busy_ratio: float | None = None
    """Share of NVML's last period (1/6 to 1 s) in which a kernel ran."""
    used_bytes: int | None = None
    """Memory in use by all processes."""
    job_bytes: int | None = None
    """Part of it used by the measured processes; 0 in a container, where NVML sees other process ids."""
    total_bytes: int | None = None
    power_w: float | None = None
    slowed: tuple[str, ...] | None = None
    """Reasons for a lower clock, other than being idle and than settings."""
    rx_bytes_s: int | None = None
    """Bytes a second from the host, measured for 20 ms every five seconds."""
    tx_bytes_s: int | None = None


class LiveCapture(msgspec.Struct, frozen=True, kw_only=True):
    """A requested capture and its state."""

    request: str
    """Id of the request, or code of the detector that requested it."""
    asked_by: str = ""
    """Requester: user | schedule | compute (computing steps, without a request) | the code of a detector"""
    state: str = "waiting"
    """State: waiting | tracing | done | failed"""
    text: str = ""
    """Reason for waiting or failing."""
    title: str = ""
    """Description of its steps."""
    when: str = ""
    """Condition that it waits for (``trace --when``); empty: none."""
    tries: int = 0
    """Number of captures that were discarded because the condition did not hold in them; until it is done, ``cost_ns``
    is theirs."""
    caught: str = ""
    """What happened in it, when it is done."""
    number: int = 0
    """Number of captures of this request so far, including this one."""
    steps: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    recorded_ns: int = 0
    cost_ns: int = 0
    bytes: int = 0
    files: tuple[str, ...] = ()
    """Paths below the session."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One job at one moment. Rates are over the last seconds, shares over about a minute; None: unknown (so far)."""

    schema: str = SCHEMA
    pid: int = 0
    start_ticks: int = 0
    uid: int = 0
    mode: str = "run"
    """Mode: run | enable"""
    command: tuple[str, ...] = ()
    cwd: str = ""
    framework: str = ""
    session: str = ""
    state: str = "starting"
    """State: starting | running | ending"""
    phase: str = ""
    """What it does: importing, building, tracing, first step, training, evaluating, predicting, saving, running; "" if
    unknown."""
    progress: LiveProgress | None = None
    """Progress of the running fit; null: none runs, or it does not say how many steps it has."""
    hang: Hang | None = None
    """What the job waits for, if it hangs, or computes without a step; null: neither. Times are nanoseconds since
    session start."""
    hang_since_unix_s: float = 0.0
    """End of the last work before it."""
    started_unix_s: float = 0.0
    updated_unix_s: float = 0.0
    processes: int = 0
    """Number of measured processes that are alive."""
    steps: int = 0
    """Number of steps since the start of the job, or of a restarted sidecar; 0 while nothing repeats."""
    step_title: str = ""
    """Description of a step."""
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    anatomy: tuple[LiveShare, ...] = ()
    top: LiveFinding | None = None
    findings: int = 0
    """Number of findings above information."""
    analysed_unix_s: float = 0.0
    """Time at which anatomy and findings were computed; 0: not yet."""
    analysis_every_s: float = 0.0
    """Interval between computations, chosen so that they cost a thousandth of one core."""
    undecided: tuple[str, ...] = ()
    """Codes of detectors that could not look."""
    tasks: tuple[LiveTask, ...] = ()
    makers: tuple[LiveMaker, ...] = ()
    """All makers of steps, the main one first; ``steps`` counts its steps."""
    records: int = 0
    sidecar_pid: int = 0
    sidecar_core_ratio: float = 0.0
    session_bytes: int = 0
    bytes_per_hour: float | None = None
    problems: tuple[str, ...] = ()
    captures: tuple[LiveCapture, ...] = ()
    """Newest captures, oldest first."""
    captures_ratio: float = 0.0
    """Cost of captures so far, as a share of the job's time."""
    member: str = ""
    """Tasks of a cluster that its processes are: "worker 0", "ps 0, worker 0"; "" if they are none."""
    cluster: str = ""
    """Id of that cluster, the same for all its members; "" if it has none."""
    cluster_tasks: int = 0
    """Number of all tasks of that cluster."""
    gpus: tuple[LiveGpu, ...] = ()
    """GPUs of its host; empty: none, or NVML cannot be asked."""
