"""The report in 4 kB, for programs and assistants: public API, schema ``stepscope.brief/1`` (additions only).

``docs/schemas/brief-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.tables.findings import Basis, Severity
from stepscope.tables.place import Place
from stepscope.tables.structs import Struct

SCHEMA = "stepscope.brief/1"
MOST_BYTES = 4000
"""Most bytes of the document."""


class BriefCost(Struct, frozen=True, kw_only=True):
    """The predicted gain of the remedy as a share, with its interval."""

    ratio: float
    low: float
    high: float
    basis: Basis
    of: Literal["step", "turn", "run"]
    """What it is a share of."""


class BriefFinding(Struct, frozen=True, kw_only=True):
    """One of the first findings of the report."""

    code: str
    """Explained by ``stepscope rule CODE``."""
    severity: Severity
    title: str
    """What is slow and where, in at most 90 characters."""
    where: Place | None = None
    """First place in the user's code; null: none is known."""
    cost: BriefCost
    remedy: str = ""
    """What to change; "" if nothing is advised. A text that was cut ends in an ellipsis."""
    proof: str | None = None
    """Command that measures the remedy without a change of the code; null: none, or too long for this document."""


class BriefStep(Struct, frozen=True, kw_only=True):
    """The steady steps."""

    count: int
    """Number of all steps."""
    mean_ns: int | None = None
    p95_ns: int | None = None
    samples_per_s: float | None = None
    run_ratio: float | None = None
    """Share of the steps in the run's wall time; null: not known."""
    parts: dict[str, float]
    """Shares of the mean step by component, the largest first, from 1.5 %."""


class Brief(Struct, frozen=True, kw_only=True):
    """The report in at most 4,000 bytes."""

    schema: str = SCHEMA
    verdict: str
    """What holds the job up, in plain words."""
    command: str
    framework: str
    """Of imported files their format."""
    step: BriefStep | None = None
    """Null: no steps were seen."""
    findings: tuple[BriefFinding, ...] = ()
    """At most the first three."""
    more_findings: int = 0
    """Number of further ones, those of level info included."""
    not_known: tuple[str, ...] = ()
    """What the run could not see: unexplained time, checks that could not decide, problems of stepscope's own."""
    session: str = ""
    """Path of the session: ``stepscope report SESSION --format json`` has everything."""
