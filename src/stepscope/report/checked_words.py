"""What the detectors said, in words: how many are clear, how many could not decide, and what would let them.

The only place that counts their outcomes.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.model.frameworks import NOT_FOR
from stepscope.report.words import SEPARATOR, plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.tables.findings import Checked

MISSING_LIMIT = 3
"""Number of reasons that a one-line summary gives for detectors that could not decide."""
LATER = frozenset({"experiment", "snapshots of memory"})
"""Signals that a run has only afterwards, or from its second minute on: without them a detector does not apply."""
COMMAND = re.compile(
    r"stepscope [a-z]+(?: (?:[A-Z]{2,}|--[a-z-]+(?: [a-z]+)?)\b)*|pip install (?:'[^']+'|[a-z][a-z-]*)"
)
"""A command in a hint."""

OUTCOMES = {
    "found": "found",
    "failed": "failed",
    "undecided": "undecided",
    "not-applicable": "not applicable",
    "clear": "clear",
}
"""Words of the outcomes, in the order of tables."""


class Blind(Struct, frozen=True, kw_only=True):
    """Detectors that could not decide for one reason."""

    missing: str
    """``no op trace``; "" if no signal is missing."""
    hint: str
    detectors: tuple[str, ...]

    @property
    def text(self) -> str:
        """``no host samples (hint)``."""
        return _reason(self.missing, self.hint)

    @property
    def command(self) -> str:
        """The command that would let them decide; "" if none does."""
        found = COMMAND.search(self.hint)
        return found[0] if found is not None else ""


def why_not(checked: Checked) -> str:
    """Why a detector could not decide: ``no host samples (hint)``."""
    missing = ", ".join(f"no {printable(m).replace('-', ' ')}" for m in checked.missing)
    return _reason(missing, printable(checked.hint))


def _reason(missing: str, hint: str) -> str:
    return f"{missing} ({hint})" if missing and hint else missing or hint


def outcome(checked: Checked) -> str:
    """What became of a detector, in words: one that lacks data is not one that does not apply."""
    if checked.outcome == "not-applicable" and checked.missing:
        return "missing data"
    return OUTCOMES[checked.outcome]


def in_order(checked: Iterable[Checked]) -> list[Checked]:
    """For a table: what was found first, what is clear last."""
    order = list(OUTCOMES)
    return sorted(checked, key=lambda c: (order.index(c.outcome), not c.missing, c.detector))


def could_not_look(checked: Checked) -> bool:
    """Whether the detector applies, but lacks data that this run could have had."""
    if checked.outcome == "not-applicable":
        return not LATER.issuperset(checked.missing)
    return checked.outcome == "undecided"


def elsewhere(checked: Iterable[Checked]) -> dict[str, tuple[str, ...]]:
    """Detectors that cannot look in the job's framework, by what is said of them: ``not applicable to PyTorch``."""
    found: dict[str, list[str]] = {}
    for one in checked:
        if one.outcome == "not-applicable" and one.hint.startswith(NOT_FOR):
            found.setdefault(printable(one.hint), []).append(printable(one.detector))
    return {said: tuple(codes) for said, codes in found.items()}


def blind_reasons(blind: Iterable[Checked]) -> list[Blind]:
    """Why detectors could not decide: the most frequently missing signal first, each detector once."""
    left = list(blind)
    reasons: list[Blind] = []
    while left:
        counts = Counter(m for c in left for m in c.missing)
        if not counts:
            return reasons + _without_signal(left)
        signal, _ = counts.most_common(1)[0]
        hit = [c for c in left if signal in c.missing]
        plain = next((c for c in hit if c.missing == (signal,)), None)
        reasons.append(
            Blind(
                missing=f"no {printable(signal).replace('-', ' ')}",
                hint=printable(plain.hint) if plain is not None else "",
                detectors=tuple(printable(c.detector) for c in hit),
            )
        )
        left = [c for c in left if signal not in c.missing]
    return reasons


def _without_signal(left: list[Checked]) -> list[Blind]:
    named: dict[str, list[str]] = {}
    for one in left:
        named.setdefault(printable(one.hint) or printable(one.detector), []).append(printable(one.detector))
    return [Blind(missing="", hint=hint, detectors=tuple(names)) for hint, names in sorted(named.items())]


def checked_short(checked: Iterable[Checked]) -> str:
    """``47 clear, 10 could not decide: no op trace (stepscope trace JOB)``: with the one command that helps most."""
    rows = list(checked)
    clear = f"{sum(c.outcome == 'clear' for c in rows)} clear" if rows else "no detector ran"
    return SEPARATOR.join([clear, *blind_items(rows)])


def blind_items(checked: Iterable[Checked]) -> list[str]:
    """The detectors that failed, and those that could not decide, with the one command that helps most."""
    rows = list(checked)
    reasons = blind_reasons(c for c in rows if could_not_look(c))
    items = []
    if failed := [printable(c.detector) for c in rows if c.outcome == "failed"]:
        items.append(f"{len(failed)} failed: {', '.join(failed)}")
    items += [f"{len(codes)} {said}" for said, codes in elsewhere(rows).items()]
    if reasons:
        first = max(reasons, key=lambda one: (bool(one.command), len(one.detectors)))
        said = first.command or first.hint.partition(";")[0]
        said = f"{first.missing} ({said})" if first.missing and said else first.missing or said
        count, of = sum(len(one.detectors) for one in reasons), len(first.detectors)
        if len(reasons) > 1:
            part = f"{of} {'has' if of == 1 else 'have'} " if first.missing else f"{of} "
            said = f"{part}{said}; {plural(len(reasons) - 1, 'more reason')}: -v"
        items.append(f"{count} could not decide: {said}")
    return items


def checked_long(checked: Iterable[Checked]) -> list[str]:
    """How many are clear; then each reason why detectors could not decide, what would let them, and their codes."""
    rows = list(checked)
    reasons = blind_reasons(c for c in rows if could_not_look(c))
    clear = f"{sum(c.outcome == 'clear' for c in rows)} clear"
    return [
        clear,
        *(f"{len(codes)} {said}: {', '.join(codes)}" for said, codes in elsewhere(rows).items()),
        *(f"{len(one.detectors)} could not decide: {one.text}: {', '.join(one.detectors)}" for one in reasons),
    ]


def checked_items(checked: Iterable[Checked]) -> list[str]:
    """Outcomes of the detectors that found nothing: ``21 clear``, ``3 could not decide: no perf (...)``."""
    rows = list(checked)
    clear = sum(c.outcome == "clear" for c in rows)
    idle = sum(c.outcome == "not-applicable" and not could_not_look(c) for c in rows)
    idle -= sum(len(codes) for codes in elsewhere(rows).values())
    blind = [c for c in rows if could_not_look(c)]
    failed = [printable(c.detector) for c in rows if c.outcome == "failed"]
    items = [f"{clear} clear" if rows else "no detector ran"]
    if blind:
        reasons = blind_reasons(blind)
        more = len(reasons) - MISSING_LIMIT
        said = [one.text for one in reasons[:MISSING_LIMIT]]
        named = "; ".join([*said, *([plural(more, "more reason")] if more > 0 else [])])
        items.append(f"{len(blind)} could not decide: {named}")
    items += [f"{len(codes)} {said}" for said, codes in elsewhere(rows).items()]
    if idle:
        items.append(f"{idle} not applicable")
    if failed:
        items.append(f"{len(failed)} failed: {', '.join(failed)}")
    return items
