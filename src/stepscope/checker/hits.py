"""What a rule reports: plain data that may be cached, sent between processes and turned into a finding."""

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
    """Qualified inside of the module; "" at its top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixPlan:
    """What a fix would do; ``checker.fixing`` does it.

    Plain data: ``action`` names the function that edits, ``arguments`` are what it is told.
    """

    action: str
    """``add-keyword``, ``replace-name``, ..."""
    title: str
    """What is done, as an imperative: "Add num_parallel_calls=tf.data.AUTOTUNE"."""
    safety: FixSafety
    """safe: same results. unsafe: somebody has to look."""
    behaviour: str
    """One sentence: what changes in behaviour."""
    spans: tuple[Span, ...]
    """The nodes to edit."""
    arguments: tuple[tuple[str, str], ...] = ()
    parts: tuple[FixPlan, ...] = ()
    """Further edits of the same fix: all are done, or none. Only what says what to edit counts in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place where a rule's pattern stands."""

    code: str
    span: Span
    message: str
    """One sentence with the names of the user's code."""
    confidence: float
    """0 to 1: how sure it is that the pattern is there (not that it costs)."""
    severity: CheckSeverity
    fix: FixPlan | None = None
    also: tuple[Span, ...] = ()
    """Other places that belong to it: the loop, the function that is called."""
