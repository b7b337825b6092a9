"""The cost of measuring: a part of the report (``model.report.report``)."""

from __future__ import annotations

from stepscope.tables.structs import Struct


class Capture(Struct, frozen=True, kw_only=True):
    """A capture of level 2 or deeper, and its cost."""

    kind: str
    """Kind: ops"""
    steps: int
    """Number of traced steps."""
    ratio: float | None
    """Median traced step over the median of its untraced neighbours, minus one; null: too few of either."""
    low: float | None
    high: float | None
    """Upper end of the bootstrap interval of 95 %."""
    id: str = ""
    way: str = ""
    """Method. profiler: TensorFlow's own, concurrent with the job. run-metadata: the session's own trace of single
    runs."""
    asked_by: str = ""
    """Requester: user, schedule, first-look (the job itself, once its steps were steady), compute (computing steps), or
    the code of a detector."""
    title: str = ""
    """Description of its steps."""
    work: str = ""
    """Work: training | evaluation | prediction; "" if unknown."""
    place: str = ""
    """Place FILE:LINE that calls the steps, if known."""
    joined: bool = True
    """Flag: its steps are of the kind that the report is about; else its ops are joined to none of them."""
    events: int = 0
    """Number of events in the trace, including those dropped when it was read; 0 unknown."""
    text: str = ""
    """Remark about it."""
    at_ns: int = 0
    """Start since session start."""
    cost_ns: int = 0
    """Time that the job lost: slower steps, and CPU time to write the trace and to read it."""
    export_ns: int = 0
    """Wall time of stopping and writing, concurrent with the job."""
    cpu_ns: int = 0
    """CPU time of the job's thread for this."""
    bytes: int = 0
    """Size of the framework's file."""


class Overhead(Struct, frozen=True, kw_only=True):
    """The cost of measuring: share of step time, with its interval, and the sidecar's share of one core."""

    ratio: float
    low: float
    high: float
    captures: tuple[Capture, ...] = ()
    captures_ratio: float = 0.0
    """Cost of all captures as a share of the job's wall time: the quantity that ``--budget`` bounds. ``ratio`` excludes
    it."""
    records: int = 0
    record_ns: int = 0
    """Time of a record with its wrapper, in a loop that does nothing else."""
    call_ns: int = 0
    """Time of a record in a training step, whose data and code occupy the caches."""
    rest_ratio: float = 0.0
    """Share of the time in which hot wrappers were detached because steps are so short."""
    sidecar_core_ratio: float = 0.0
