"""Findings of one side of a comparison, and whether the other side could have had them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.use_cases.comparing import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.findings import Finding
    from stepscope.use_cases.comparing.numbers import SessionNumbers

_COUNTS = frozenset({"high", "medium", "low"})
_LOOKED = frozenset({"found", "clear"})


def of_one_side(here: Sequence[SessionNumbers], there: Sequence[SessionNumbers]) -> list[Finding]:
    """Findings that count, of every run here and of none there; there one that only informs is one, too."""
    mine, theirs = ([_by_key(run) for run in side] for side in (here, there))
    return [
        one
        for key, one in mine[0].items()
        if all(key in run and run[key].severity in _COUNTS for run in mine)
        if not any(key in run for run in theirs)
    ]


def looked_for(one: Finding, there: Sequence[SessionNumbers]) -> bool:
    """Whether the detector of a finding decided in every run there: where it could not look, nothing has gone."""
    return all(any(row.detector == one.code and row.outcome in _LOOKED for row in run.report.checked) for run in there)


def _by_key(one: SessionNumbers) -> dict[tuple[str, str, str], Finding]:
    """Findings by what does not change with an edit elsewhere: code, file and function; the weightiest of each."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in one.report.findings:
        where = finding.where[0] if finding.where else None
        place = (numbers.file_key(one.manifest, where.file), where.function) if where is not None else ("", "")
        found.setdefault((finding.code, *place), finding)
    return found
