"""What the fixtures of a detector are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.derive.sessions import Job

from stepscope.model.report.finding import Basis, PipelineStage, Severity, Stage

Build = Callable[[], Job]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a detector must say of its firing session. ``where`` in order; ``metrics``: evidence, complete."""

    severity: Severity
    cost: float
    where: tuple[tuple[str, int], ...]
    metrics: tuple[str, ...]
    title: tuple[str, ...]
    """Words of the title."""
    introduced: Stage = "training"
    exposed: Stage = "training"
    pipeline_stage: PipelineStage
    remedy: str
    """The id of the first remedy."""
    basis: Basis = "measured"
    per_step: int | None = None
    """Cost of the mean step, where it is not the usual step's share."""


@dataclass(frozen=True, kw_only=True)
class Fixtures:
    """The sessions of one detector. ``below`` is silent, ``at`` is found, and they differ by next to nothing."""

    firing: Build
    expected: Expected
    silent: Build
    not_applicable: Build
    missing: str
    below: Build
    at: Build
