"""The brief report as a piece of HTML for notebooks: no script, style sheet or link; colours are those around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.brief import document, text
from stepscope.report.marked import Html, el
from stepscope.tables.units import format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.brief import BriefFinding, BriefStep
    from stepscope.model.report.report import Report

SOFT = {"style": "margin: 0.3em 0; opacity: 0.8"}
CELL = {"style": "text-align: left; vertical-align: top"}
NARROW = {"style": "text-align: left; vertical-align: top; white-space: nowrap"}
OF = {"step": "of the step", "turn": "of the turn", "run": "of the run"}


def render(report: Report, session_path: str = "") -> Html:
    """Verdict, step, findings, what is not known, and the command that shows more."""
    brief = document.brief_of(report, session_path)
    parts = [el("p", {"style": "margin: 0.3em 0; font-weight: 600"}, brief.verdict)]
    if brief.step is not None:
        parts.append(el("p", SOFT, _joined([*_step(brief.step), *text.named_parts(report)])))
    if brief.findings:
        head = el("tr", None, *(el("th", CELL, text) for text in ("", "finding", "cost", "what to do")))
        rows = (_finding(rank, one) for rank, one in enumerate(brief.findings, 1))
        parts.append(el("table", None, el("thead", None, head), el("tbody", None, *rows)))
    if brief.not_known:
        parts.append(el("p", SOFT, "not known: ", _joined(brief.not_known)))
    if brief.session:
        more = f"{words.plural(brief.more_findings, 'more finding')}: " if brief.more_findings else ""
        parts.append(el("p", SOFT, more, el("code", None, f"stepscope report {brief.session} -v")))
    return el("div", None, *parts)


def _step(step: BriefStep) -> list[str]:
    items = [words.plural(step.count, "step")]
    items += [] if step.mean_ns is None else [f"{format_ns(step.mean_ns)} a step"]
    return items + ([] if step.samples_per_s is None else [f"{format_rate(step.samples_per_s)} samples/s"])


def _finding(rank: int, found: BriefFinding) -> Html:
    cost = found.cost
    said = f"{format_ratio(cost.ratio)} ({100 * cost.low:.0f}\u2013{100 * cost.high:.0f}) {OF[cost.of]}"
    proof = Html(" {}").format(el("code", None, found.proof)) if found.proof else Html()
    where = el("div", SOFT, words.place_text(found.where)) if found.where is not None else Html()
    cells = (
        el("td", CELL, str(rank)),
        el("td", CELL, found.title, " ", el("code", None, found.code), where),
        el("td", NARROW, said if cost.ratio else ""),
        el("td", CELL, found.remedy, proof),
    )
    return el("tr", None, *cells)


def _joined(items: Iterable[str]) -> Html:
    return Html(" \u00b7 ").join(items)
