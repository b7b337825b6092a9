"""The ledger in words: a line for the terminal, rows for tables and bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.model.report.ledger import NO_STEPS
from stepscope.report import words
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.ledger import LedgerEntry, Phase
    from stepscope.model.report.report import Report, SessionSummary
    from stepscope.tables.place import Place

SHOWN_RATIO = 0.02
"""Smallest share of the wall time in the line."""
LISTED_RATIO = 0.005
"""Smallest share of the wall time with a row; smaller parts share one."""
REST = "unmeasured"
"""Component in whose colour time is drawn that was not seen."""
PHASES: dict[Phase, tuple[str, str]] = {
    "start": ("before the imports", ""),
    "imports": ("imports", ""),
    "building": ("building", "building"),
    "first-steps": ("first steps", "tracing"),
    "steps": ("steps", ""),
    "other-steps": ("other steps", "call"),
    "tracing": ("tracing", "tracing"),
    "evaluation": ("evaluation", "evaluation"),
    "saving": ("saving", "saving"),
    "between-steps": ("between steps", "other-python"),
    "end": ("end", ""),
    "not-seen": ("not seen", REST),
}
"""Word of each phase, and the component in whose colour it is drawn; "": that of no component."""
SETTLED = {
    "finding": "finding {code}",
    "general": "finding {code}",
    "limit": "as fast as it can be here",
    "small": "",
    "unexplained": "unexplained",
}
"""What is said of how an entry is settled."""


class ShownEntry(Struct, frozen=True, kw_only=True):
    """An entry, or several small ones together."""

    label: str
    component: str
    """Component in whose colour it is drawn; "" for none."""
    ns: int
    ratio: float
    settled: str = ""
    text: str = ""
    where: tuple[Place, ...] = ()


def ledgers(report: Report) -> list[tuple[str, list[LedgerEntry]]]:
    """Title and entries of each ledger, that of the job first."""
    found: dict[int | None, list[LedgerEntry]] = {}
    for entry in report.ledger:
        found.setdefault(entry.maker, []).append(entry)
    return [(_title(report, maker), entries) for maker, entries in found.items()]


def _title(report: Report, maker: int | None) -> str:
    makers = report.session.step_makers
    if maker is None or maker >= len(makers):
        return "The job"
    one = makers[maker]
    place = f" at {words.place_text(one.place, short=True)}" if one.place is not None else ""
    return f"{words.printable(one.title)}{place}"


def line(report: Report) -> list[str]:
    """The parts of the job's life, steps in one: ``imports 4.1 s``, ``600 steps 47 s``."""
    entries = [entry for entry in report.ledger if entry.maker is None]
    totals: dict[Phase, tuple[int, float]] = {}
    for entry in entries:
        ns, ratio = totals.get(entry.phase, (0, 0.0))
        totals[entry.phase] = ns + entry.ns, ratio + entry.ratio
    steps, words_of = _steps(report.session), {entry.phase: phase_word(entry) for entry in entries}
    return [
        f"{steps if phase == 'steps' else words_of[phase]} {format_ns(ns)}"
        for phase, (ns, ratio) in totals.items()
        if ratio >= SHOWN_RATIO
    ]


def _steps(summary: SessionSummary) -> str:
    """The steps of the process that the ledger is of: others may make the same."""
    makers = [maker for maker in summary.step_makers if maker.main]
    if len({maker.pid for maker in makers}) <= 1:
        return words.steps_text(summary)
    return words.plural(sum(maker.count for maker in makers if maker.pid == makers[0].pid), "step")


def rows(entries: Sequence[LedgerEntry]) -> list[ShownEntry]:
    """A row for each entry, small ones in one row; what was not seen last."""
    seen = [entry for entry in entries if entry.phase != "not-seen"]
    small = [entry for entry in seen if entry.ratio < LISTED_RATIO]
    found = [_row(entry) for entry in seen if entry.ratio >= LISTED_RATIO]
    if small:
        ns, ratio = sum(entry.ns for entry in small), sum(entry.ratio for entry in small)
        names = ", ".join(_label(entry) for entry in small)
        found.append(ShownEntry(label="the rest", component="", ns=ns, ratio=ratio, text=names))
    return found + [_row(entry) for entry in entries if entry.phase == "not-seen"]


def _row(entry: LedgerEntry) -> ShownEntry:
    return ShownEntry(
        label=_label(entry),
        component=entry.component or PHASES[entry.phase][1],
        ns=entry.ns,
        ratio=entry.ratio,
        settled=SETTLED[entry.settled_by].format(code=words.printable(entry.code)),
        text=words.printable(entry.text),
        where=entry.where,
    )


def _label(entry: LedgerEntry) -> str:
    return f"steps: {words.component_word(entry.component)}" if entry.component else phase_word(entry)


def phase_word(entry: LedgerEntry) -> str:
    """The word of an entry's phase: a job without steps builds nothing for them."""
    return "the program" if entry.text.startswith(NO_STEPS) else PHASES[entry.phase][0]
