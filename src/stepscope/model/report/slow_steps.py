"""The slow steps of a report, each compared with the median step."""

from __future__ import annotations

import msgspec


class StepPart(msgspec.Struct, frozen=True, kw_only=True):
    """A component of the step next to that of the median step."""

    component: str
    ns: int
    median_ns: int
    """Time of the component in the median step."""
    factor: float | None = None
    """Time over that of the median step; null if the median step has none of it."""


class StepSaid(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a slow step under one label: what happened, stacks, ops, machine."""

    label: str
    lines: tuple[str, ...]


class SlowStep(msgspec.Struct, frozen=True, kw_only=True):
    """An outlier among the steps. ``stepscope report SESSION --step NUMBER --format json`` has it as data."""

    number: int
    """Number of the step, from 0."""
    headline: str
    """What it was, in one sentence."""
    start_ns: int
    dur_ns: int
    median_ns: int
    """Duration of the median step."""
    parts: tuple[StepPart, ...] = ()
    """Components, largest extra time first."""
    said: tuple[StepSaid, ...] = ()
