"""What measuring cost: a part of the report (``model.report.finding``)."""

from __future__ import annotations

from stepscope.model.structs import Struct


class Capture(Struct, frozen=True, kw_only=True):
    """A level-2-or-deeper capture and what it cost."""

    kind: str
    """ops"""
    steps: int
    """Traced ones."""
    ratio: float | None
    """Median traced step against the median of its untraced neighbours, less one; null: too few of either."""
    low: float | None
    high: float | None
    """Bootstrap interval of 95 %."""
    id: str = ""
    way: str = ""
    """profiler: TensorFlow's own, driven beside the job. run-metadata: the session's own trace of single runs."""
    asked_by: str = ""
    """user, schedule, or the code of a detector."""
    title: str = ""
    """What its steps are."""
    work: str = ""
    """training | evaluation | prediction; "" where that is not known."""
    place: str = ""
    """FILE:LINE that calls the steps, where that is known."""
    joined: bool = True
    """Its steps are of the kind that the report is about; else its ops are joined to none of them."""
    events: int = 0
    """In the trace, those included that were dropped when it was read; 0 unknown."""
    text: str = ""
    """What is to be known of it."""
    at_ns: int = 0
    """When it began, since session start."""
    cost_ns: int = 0
    """What the job lost: slower steps, and CPU time to write the trace and to read it."""
    export_ns: int = 0
    """Wall time of stopping and writing, beside the job."""
    cpu_ns: int = 0
    """CPU time of the job's thread that did so."""
    bytes: int = 0
    """Of the framework's file."""


class Overhead(Struct, frozen=True, kw_only=True):
    """What measuring cost: share of step time, with its interval, and the sidecar's share of one core."""

    ratio: float
    low: float
    high: float
    captures: tuple[Capture, ...] = ()
    captures_ratio: float = 0.0
    """What all captures cost, as a share of the job's wall time: what ``--budget`` bounds. ``ratio`` is without it."""
    records: int = 0
    record_ns: int = 0
    """A record with its wrapper, in a loop that does nothing else."""
    call_ns: int = 0
    """The same in a training step, whose data and code have taken the caches."""
    rest_ratio: float = 0.0
    """Share of the time in which hot wrappers were detached, because steps are so short."""
    sidecar_core_ratio: float = 0.0
