"""The report of ``stepscope check``: public API, schema ``stepscope.check/1`` (additions only).

``docs/schemas/check-1.json`` is generated from these structs.
"""

from __future__ import annotations

from stepscope.model.report.finding import Diagnostic, Finding
from stepscope.model.structs import Struct

SCHEMA = "stepscope.check/1"


class CheckedFor(Struct, frozen=True, kw_only=True):
    """The versions that were checked for."""

    tensorflow: str
    """Major and minor: "2.15"."""
    keras: int
    """Major version."""
    source: str
    """Where that is from: "--target-version", "pyproject.toml", the name of the file that pins it, "installed", or
    "newest" that rules were measured on."""


class CheckReport(Struct, frozen=True, kw_only=True):
    """What a check found. Findings are those of reports of runs, with origin "static"."""

    schema: str = SCHEMA
    version: str
    """Of stepscope."""
    target: CheckedFor
    files: int
    """Files that were looked at, those that had to be skipped included."""
    rules: tuple[str, ...]
    """Codes of the rules that were run."""
    findings: tuple[Finding, ...]
    """In the order of files and lines."""
    ignored: int = 0
    """Silenced by comments or by settings for single files."""
    fixed: int = 0
    """Repaired by ``--fix``, and not among the findings any more."""
    known: int = 0
    """Left out because the baseline knows them."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Files that were skipped, rules that failed, comments that silence nothing."""
