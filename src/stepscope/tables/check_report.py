"""The report of ``stepscope check``: public API, schema ``stepscope.check/1`` (additions only).

``docs/schemas/check-1.json`` is generated from these structs.
"""

from __future__ import annotations

from stepscope.tables.findings import Diagnostic, Finding
from stepscope.tables.structs import Struct

SCHEMA = "stepscope.check/1"


class CheckedFor(Struct, frozen=True, kw_only=True):
    """The versions checked for."""

    tensorflow: str
    """Major and minor: "2.15"."""
    keras: int
    """Major version."""
    source: str
    """Source of the version: "--target-version", "pyproject.toml", the name of the file that pins it, "installed", or
    "newest" that rules were measured on."""


class CheckReport(Struct, frozen=True, kw_only=True):
    """The result of a check. Findings are those of reports of runs, with origin "static"."""

    schema: str = SCHEMA
    version: str
    """Version of stepscope."""
    target: CheckedFor
    files: int
    """Number of files examined, including those that had to be skipped."""
    not_analysed: tuple[str, ...] = ()
    """Files that no rule knows: neither TensorFlow, Keras, NumPy nor transformers reaches them. Nothing was found there
    because nothing was looked for."""
    rules: tuple[str, ...]
    """Codes of the rules that were run."""
    findings: tuple[Finding, ...]
    """Findings in the order of files and lines."""
    ignored: int = 0
    """Number silenced by comments or by settings for single files."""
    fixed: int = 0
    """Number repaired by ``--fix``, which are no longer among the findings."""
    infos: int = 0
    """Number of infos that are not among the findings, because ``--show-info`` was not given."""
    known: int = 0
    """Number omitted because they are in the baseline."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Files that were skipped, rules that failed, comments that silence nothing."""
