"""The steps of a job in its report: their rate, their times, and why these calls are the steps."""

from __future__ import annotations

from typing import Literal

from stepscope.tables.structs import Struct

MakerKind = Literal["training", "evaluation", "prediction", "step", "call"]


class Throughput(Struct, frozen=True, kw_only=True):
    """Throughput of the steady part. None if samples are unknown."""

    samples_per_s: float | None = None
    steps_per_s: float | None = None


class StepTimes(Struct, frozen=True, kw_only=True):
    """Distribution of steady steps. Nanoseconds."""

    count: int
    """Those that were timed one by one."""
    mean_ns: int
    """Of all, those included that were only counted; the percentiles are of the timed ones."""
    p50_ns: int
    p95_ns: int
    p99_ns: int
    warmup_steps: int = 0
    warmup_ns: int = 0
    source: str = ""
    """Source of the steps: "keras fit", "tf.function train_step", "Session.run", "predict", "stepscope.step"..."""


class StepChoice(Struct, frozen=True, kw_only=True):
    """The exclusions of one rule during the choice of the step."""

    rule: str
    left_out: tuple[str, ...]
    """Titles with the number of calls, at most eight."""
