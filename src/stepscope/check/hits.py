"""Results of rules: plain data that can be cached, sent between processes and turned into findings."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

CheckSeverity = Literal["error", "warning", "info"]
FixSafety = Literal["safe", "unsafe"]


class Span(Struct, frozen=True, kw_only=True):
    """A range of a file. Lines and columns count from 1, columns in characters; the end column is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""
    """Name of the function, qualified within the module; "" at module level."""


class FixPlan(Struct, frozen=True, kw_only=True):
    """A planned fix, executed by ``check.fixing``.

    Plain data: ``action`` names the editing function, ``arguments`` are its parameters.
    """

    action: str
    """Name of the action: ``add-keyword``, ``replace-name``, ..."""
    title: str
    """Title of the fix, as an imperative: "Add num_parallel_calls=tf.data.AUTOTUNE"."""
    safety: FixSafety
    """Safety of the fix. safe: same results. unsafe: needs review."""
    behaviour: str
    """Change in behaviour, in one sentence."""
    spans: tuple[Span, ...]
    """Spans of the nodes to edit."""
    arguments: tuple[tuple[str, str], ...] = ()
    parts: tuple[FixPlan, ...] = ()
    """Further edits of the same fix: all are applied, or none. Only the fields that describe the edit count in them."""


class Excess(Struct, frozen=True, kw_only=True):
    """A call that does its work more often than is meant."""

    call: Span
    factor: int
    """How many times as much."""


class Often(Struct, frozen=True):
    """How often a place runs in one run of the program, where the source says so (``check.inference.relevance``)."""

    runs: int | None = None
    """Number of runs, or of elements that it runs on; None: the source does not say."""
    rare: str = ""
    """Why it costs next to nothing, in words for a reader; "" if it may matter."""


class Hit(Struct, frozen=True, kw_only=True):
    """One place that matches a rule's pattern."""

    code: str
    span: Span
    message: str
    """Message: one sentence with the names of the user's code."""
    confidence: float
    """Confidence, 0 to 1, that the pattern is present (not that it costs time)."""
    severity: CheckSeverity
    """Severity where the place runs often enough to matter; ``reported_severity`` is what a check reports."""
    often: Often = Often()
    fix: FixPlan | None = None
    also: tuple[Span, ...] = ()
    """Other places that belong to the hit: the loop, the called function."""
    excess: Excess | None = None
    """What the pattern multiplies, where the source says by how much."""

    @property
    def reported_severity(self) -> CheckSeverity:
        """The severity in a report without a run: info where the place runs rarely."""
        return "info" if self.often.rare else self.severity
