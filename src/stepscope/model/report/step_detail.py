"""One step compared with the median step: the answer of ``stepscope report --step`` (schema ``stepscope.step/1``).

Additions only. Times are nanoseconds; those of the step count from the session's start.
"""

from __future__ import annotations

import msgspec

from stepscope.model.report.record_kinds import Happened
from stepscope.model.report.slow_steps import StepPart
from stepscope.tables.place import Place

SCHEMA = "stepscope.step/1"


class StepHappening(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one name in the step that most steps lack, or that lasted much longer than in others."""

    what: Happened
    name: str
    """Name of the callback, the function, the call; empty if the kind says all."""
    where: Place | None = None
    component: str = ""
    """Component of the step in its middle; empty outside of the step."""
    calls: int = 1
    at_ns: int = 0
    """Start of the first."""
    ns: int = 0
    """Time within the step."""
    usual_steps_ratio: float = 0.0
    """Share of the other steady steps in which it happened."""
    usual_ns: int = 0
    """Its median time in those; 0 if there are none."""
    reason: str = ""
    """Of a retrace: what changed."""


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """Stack samples of the step at one line, the user's where a frame is the user's."""

    where: Place
    component: str
    samples: int
    ns: int
    """Time that the samples stand for."""
    called: str = ""
    """Innermost function of Python that was running below it, the most frequent; empty for none."""


class StepOp(msgspec.Struct, frozen=True, kw_only=True):
    """An op that took longer in the step than in the other traced steps."""

    name: str
    type: str
    ns: int
    """Time over all threads."""
    usual_ns: int
    """Median of the other traced steps."""


class StepReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a counter of the machine did around the step."""

    name: str
    """others_cpu | wait_for_cpu | cpu | throttled | steal | waiting_for_disk | page_faults | major_faults | read |
    written | disk_busy | swapped_out"""
    value: float
    usual: float
    """Mean over the steady steps."""
    unit: str
    """cores | /s | MB/s | disks"""
    raised: bool = False
    """Flag: well above the usual."""


class StepDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One step, and why it was slow."""

    schema: str = SCHEMA
    session: str = ""
    """Id of the session."""
    title: str = ""
    """What a step is."""
    number: int
    """Number of the step, from 0; steps that were only counted have numbers too."""
    steps: int = 0
    """All steps of the job's main maker, those that were only counted included."""
    asked: str = ""
    """Number that was asked for, if that step was not observed."""
    headline: str = ""
    """What it was, in one sentence."""
    standing: str = ""
    """steady | warm-up | pause: not a steady step | last: its end was not seen"""
    rank: int = 0
    """1: the slowest of the observed steps after the warm-up; 0: it is in the warm-up."""
    start_ns: int = 0
    dur_ns: int = 0
    median_ns: int = 0
    """Duration of the median step: the mean of the steady steps in the middle fifth by duration."""
    factor: float = 0.0
    parts: tuple[StepPart, ...] = ()
    """Components, largest extra time first."""
    happened: tuple[StepHappening, ...] = ()
    lines: tuple[StepLine, ...] = ()
    samples: int = 0
    """Stack samples of its thread within the step."""
    cpu_ratio: float | None = None
    """Share of the sampled time on a CPU; null: unknown."""
    op_trace: str = ""
    """Op trace that holds the step; empty: none does."""
    ops: tuple[StepOp, ...] = ()
    machine: tuple[StepReading, ...] = ()
    machine_every_ns: int = 0
    """Distance of the samples of the machine around the step."""
    rival: str = ""
    """Process outside of the job that used most CPU around the step."""
    notes: tuple[str, ...] = ()
    """What the comparison cannot show."""
