"""A death for lack of memory and another finding at the same line, which says what is kept there, are one cause.

The death stays first: it ended the job. It takes the cause, the words and the advice of the other finding, which stays
for its time: that is measured on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.detectors.base import rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.findings import Finding

DEATH = "MEM004"
KEEPING = frozenset({"HST007", "GRF001", "GRF004"})
"""Detectors of what is made again and again, of which a program or TensorFlow keeps each: models, traces, ops."""
NO_ADVICE = "look-at-line"
OF_MODELS = "models"
"""Unit of a container of models: their loading is the root of what it holds."""


def joined(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, ranked, with what others say of the line at which the job died."""
    found = list(findings)
    for index, death in enumerate(found):
        if death.code == DEATH and (death.cause == "unknown" or _keeps_models(death)):
            other = next((one for one in found if one.code in KEEPING and _is_there(death, one)), None)
            if other is not None:
                found[index] = _adopting(death, other)
    return tuple(sorted(found, key=rank))


def _keeps_models(death: Finding) -> bool:
    return any(one.metric == "size" and one.unit == OF_MODELS for one in death.evidence)


def _is_there(death: Finding, other: Finding) -> bool:
    """Whether a line of the death is the other finding's, which costs something."""
    return other.severity not in ("info", "ask") and any(
        one.file == two.file and one.line <= (two.end_line or two.line) and two.line <= (one.end_line or one.line)
        for one in death.where
        for two in other.where
    )


def _adopting(death: Finding, other: Finding) -> Finding:
    own = tuple(remedy for remedy in death.remedies if remedy.id != NO_ADVICE)
    return replace(
        death,
        title=f"{death.title}; {other.title}",
        cause=other.cause,
        introduced_stage=other.introduced_stage,
        exposed_stage=other.exposed_stage,
        where=tuple(dict.fromkeys((*other.where, *death.where))),
        evidence=(*death.evidence, *other.evidence),
        remedies=(*other.remedies, *own),
        explanation=f"{death.explanation} {other.explanation}".strip(),
        related_codes=tuple(dict.fromkeys((*death.related_codes, other.code))),
        confidence=max(death.confidence, min(other.confidence, 0.8)),
    )
