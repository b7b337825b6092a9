"""What the report says of an op trace: public API, schema ``stepscope.report/1`` (additions only)."""

from __future__ import annotations

import msgspec

from stepscope.model.structs import Struct


class PlaneSummary(Struct, frozen=True, kw_only=True):
    """Something that an op trace observed."""

    name: str
    kind: str
    """host | gpu | tpu | device | other"""
    events: int
    """0: it was not captured, which does not say that it was idle."""


class OpTraceSteps(Struct, frozen=True, kw_only=True):
    """Steps as an op trace shows them, the first and the last included."""

    how: str
    """marker | device line | program runs | function calls | run"""
    name: str
    count: int
    median_ns: int
    min_ns: int
    max_ns: int


class OpTraceSummary(Struct, frozen=True, kw_only=True):
    """An op trace of the session: captured, or imported."""

    name: str
    file: str
    """Of an imported one."""
    format: str
    """xplane | trace-event | kineto | run-metadata"""
    events: int
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that the reader left out by choice, by reason."""
    planes: tuple[PlaneSummary, ...] = ()
    steps: tuple[OpTraceSteps, ...] = ()
    """Every way in which it shows steps, the most telling first."""
