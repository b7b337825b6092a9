"""The report in the terminal: about ten lines of plain text at any width, with optional colours.

It draws nothing and gives no advice beyond the findings; the page (``report.html``) has the charts.
``detectors.base.rank`` puts the findings in order; the golden files in ``tests/report/golden`` fix the layout.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.cells import cell_len

from stepscope.report import verdict, words
from stepscope.report.document import sections
from stepscope.report.lines import NO_BREAK, SEPARATOR, Piece, labelled, paint, wrap, wrap_items
from stepscope.report.section import Asked, Where
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.report import Report
    from stepscope.report.lines import Line
    from stepscope.report.section import Lines, Short
    from stepscope.tables.findings import Finding

MIN_WIDTH = 60
TOP_FINDINGS = 5
TOP_INFOS = 6
HEAD = 12
"""Column of the text after ``stepscope`` and ``the step``."""
TAIL = 10
"""Column of the text after ``checked`` and ``report``."""
BODY = 18
"""Column of a finding's text."""
GAP = 2
"""Minimum number of blanks between a title and the place to its right."""


def render(
    report: Report,
    *,
    color: bool = False,
    width: int = 120,
    session_path: str = "",
    html_path: str = "",
    verbose: bool = False,
    price: float = 0.0,
) -> str:
    """The report as lines of text that end in a newline.

    Args:
        report: the report to show.
        color: use ANSI colours.
        width: columns of the terminal; at least 60 are used.
        session_path: path of the session, for the command that opens it again.
        html_path: path of the page.
        verbose: with every reason why detectors could not decide.
        price: of an hour of the machine, in any currency; 0: nothing is said of it.
    """
    width = max(width, MIN_WIDTH)
    said = sections.lines(Asked(report=report, session_path=session_path, price=price, verbose=verbose))
    why = "" if verbose else verdict.nothing_to_show(report)
    if why:
        said = [one for one in said if one.always]
    if words.is_imported(report):
        head = _placed(said, width, Where.IMPORTED, Where.HEAD_END)
    else:
        head = [*_first(report, width - HEAD, cost=not why), *labelled("why", HEAD, wrap(_why(why), width - HEAD))]
        head += _placed(said, width, Where.HEAD, Where.HEAD_END)
    findings = [] if why else [(), *_findings(report, width)]
    below = _placed(said, width, Where.FIRST, Where.BELOW, Where.END)
    lines = [*head, *findings, *below, *_paths(session_path, html_path, width)]
    return "".join(paint(line, color=color) + "\n" for line in lines)


def _why(why: str) -> str:
    return f"{why}{SEPARATOR}more: -v" if why else ""


def _placed(said: Sequence[Lines], width: int, *places: Where) -> list[Line]:
    """The lines of some places, wrapped behind their labels."""
    found = []
    for place in places:
        column = TAIL if place >= Where.FIRST else HEAD
        for one in said:
            if one.where == place:
                texts = [line for text in one.texts for line in _wrapped(text, width - column)]
                found += labelled(one.label, column, texts, one.style)
    return found


def _wrapped(text: str | Short | tuple[str, ...], room: int) -> list[str]:
    if isinstance(text, tuple):
        return wrap_items(text, room)
    if isinstance(text, str):
        return wrap(text, room)
    first, *more = wrap(text.text, room) or [""]
    return [f"{wrap(text.text, room - 2)[0]} \u2026" if more else first] if first else []


def _first(report: Report, room: int, *, cost: bool) -> list[Line]:
    """The first line: rates of the steps, or that there are none."""
    summary = report.session
    items = verdict.head_items(report)
    if summary.steps:
        items += [words.backend_text(summary), verdict.gpu_text(report)]
    else:
        items += [words.framework_text(summary), format_ns(summary.wall_ns)]
        items.append(words.plural(summary.processes, "process") if summary.processes else "")
    items += [verdict.exit_text(summary), words.overhead_text(report.overhead, steps=summary.steps) if cost else ""]
    return labelled("stepscope", HEAD, wrap_items(filter(None, items), room))


def _findings(report: Report, width: int) -> list[Line]:
    head, listed = verdict.machine(report), verdict.listed(report)
    found = [finding for finding in words.significant(report) if finding is not head]
    infos = [finding for finding in report.findings if finding.severity == "info" and finding not in listed]
    lines: list[Line] = []
    shown = found[:TOP_FINDINGS]
    shown += [f for f in found[TOP_FINDINGS:] if f.severity == "ask"]
    if not found:
        lines += _nothing(report, width)
    for number, finding in enumerate([*shown, *listed], 1):
        lines += _finding(number, finding, width)
    for finding in infos[:TOP_INFOS]:
        lines += _info(finding, width)
    counts = (len(found) - len(shown), "more"), (len(infos) - TOP_INFOS, "info")
    more = [f"+ {count} {word}" for count, word in counts if count > 0]
    if more:
        lines.append((Piece(SEPARATOR.join(more), "dim"),))
    return lines


def _info(finding: Finding, width: int) -> list[Line]:
    """A finding that only informs: its title, and its place."""
    code = Piece(f"{words.printable(finding.code)}  ".ljust(8), "label")
    place = f" ({words.place_text(finding.where[0], short=True)})" if finding.where else ""
    first, *rest = wrap(f"{words.printable(finding.title)}{place}", width - BODY)
    head = Piece("  "), Piece("info".ljust(8), "info"), code, Piece(first)
    return [head, *((Piece(" " * BODY), Piece(text)) for text in rest)]


def _nothing(report: Report, width: int) -> list[Line]:
    """The verdict without findings above info. Unexplained time stands in the head."""
    text = verdict.nothing_text(report)
    if verdict.unexplained_text(report):
        return [(Piece("no finding explains the time above", "label"),)]
    return [(Piece(line, "good" if text == verdict.NOTHING else "label"),) for line in wrap(text, width)]


def _finding(number: int, finding: Finding, width: int) -> list[Line]:
    room = width - BODY
    indent = Piece(" " * BODY)
    head = (
        Piece(f"{number} "),
        Piece(finding.severity.ljust(8), finding.severity),
        Piece(f"{words.printable(finding.code)}  ".ljust(8), "label"),
    )
    titles = wrap(words.printable(finding.title), room)
    lines: list[Line] = [(head if i == 0 else (indent,)) + (Piece(text),) for i, text in enumerate(titles)]
    if finding.where:
        place = words.place_text(finding.where[0], short=True)
        used = sum(cell_len(p.text) for p in lines[-1])
        gap = width - used - cell_len(place)
        if gap >= GAP:
            lines[-1] += (Piece(" " * gap), Piece(place, "place"))
        else:
            lines.append((indent, Piece("at "), Piece(_shorten(place, room - 3), "place")))
    cost = _cost(finding)
    if finding.remedies:
        cost += f"{SEPARATOR if cost else ''}remedy: {words.printable(finding.remedies[0].text)}"
    rule = f"(stepscope rule {words.printable(finding.code)})".replace(" ", NO_BREAK)
    texts = [f"does: {words.printable(finding.does.text)}"] if finding.does is not None else []
    texts.append(f"{cost} {rule}")
    proof = next((r.what_if for r in finding.remedies if r.what_if is not None), None)
    if proof is not None:
        texts.append(f"{words.proof_word(finding)}: {words.printable(proof)}")
    edit = next((r for r in finding.remedies if r.edit is not None), None)
    if edit is not None and edit.edit is not None:
        said = "" if edit is finding.remedies[0] else f"{words.printable(edit.text)}: "
        shown = words.printable(edit.edit).replace(" ", NO_BREAK)
        texts.append(f"edit: {said}{shown}")
    return lines + [(indent, Piece(line)) for text in texts for line in wrap(text, room)]


def _cost(finding: Finding) -> str:
    """The cost; "" for a general finding without one, whose title says its share."""
    if verdict.is_general(finding) and finding.cost.basis == "unknown":
        return ""
    return words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))


def _shorten(place: str, room: int) -> str:
    """Drop leading folders of a path that does not fit; its end is more informative."""
    while cell_len(place) > room:
        _, slash, rest = place.lstrip("\u2026/").partition("/")
        place = f"\u2026/{rest}" if slash else wrap(place.replace(" ", NO_BREAK), room)[0]
    return place


def _paths(session_path: str, html_path: str, width: int) -> list[Line]:
    items = [words.printable(html_path)] if html_path else []
    if session_path:
        items.append(f"stepscope report {shlex.quote(words.printable(session_path))}")
    return labelled("report", TAIL, wrap_items(items, width - TAIL))
