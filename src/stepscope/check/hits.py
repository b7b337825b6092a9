"""Results of rules: plain data that can be cached, sent between processes and turned into findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckSeverity = Literal["error", "warning", "info"]
FixSafety = Literal["safe", "unsafe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of a file. Lines and columns count from 1, columns in characters; the end column is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""
    """Name of the function, qualified within the module; "" at module level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixPlan:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A call that does its work more often than is meant."""

    call: Span
    factor: int
    """How many times as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place that matches a rule's pattern."""

    code: str
    span: Span
    message: str
    """Message: one sentence with the names of the user's code."""
    confidence: float
    """Confidence, 0 to 1, that the pattern is present (not that it costs time)."""
    severity: CheckSeverity
    fix: FixPlan | None = None
    also: tuple[Span, ...] = ()
    """Other places that belong to the hit: the loop, the called function."""
    excess: Excess | None = None
    """What the pattern multiplies, where the source says by how much."""
