"""Findings of the checker for people: a line each, in the form that editors know, and the source below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rich.cells import cell_len

from stepscope.tables.check_report import CheckReport
from stepscope.tables.findings import Finding
from stepscope.tables.place import Place

TAB = 4
LEAD = 24
"""Columns of a long line that are shown before what is marked."""
MIN_WIDTH = 40
MOST_NAMED = 3
"""Files that the summary names."""
BOLD, DIM, BLUE = "1", "2", "1;34"
SEVERITY = {"error": "1;31", "warning": "1;33", "info": "1;36"}
"""SGR parameters (ECMA-48)."""
Lines = Callable[[Place], Sequence[str]]
"""The lines of a place's file, or of its notebook cell; empty when it cannot be read."""


def render(findings: Iterable[Finding], *, lines: Lines | None = None, color: bool = False, width: int = 120) -> str:
    """Findings in their order, each line ended.

    Args:
        findings: of a check.
        lines: where excerpts come from; None for none.
        color: with ANSI colours.
        width: of the terminal, in columns.
    """
    parts = []
    for finding in findings:
        parts.append(_head(finding, color=color))
        if lines is not None:
            parts += [*_excerpt(finding, lines(finding.where[0]), color=color, width=width), ""]
    return "".join(f"{line}\n" for line in parts)


def where(place: Place) -> str:
    """``train.py:8:11``, ``notes.ipynb:cell 3:8:11``."""
    cell = f":cell {place.cell}" if place.cell else ""
    return f"{printable(place.file)}{cell}:{place.line}:{place.column}"


def summary(report: CheckReport) -> str:
    """What was looked at, what was found and what can be done about it; one or two lines."""
    counts = Counter(finding.severity for finding in report.findings)
    found = ", ".join(_count(counts[word], word) for word in ("error", "warning", "info") if counts[word])
    extra = ((report.fixed, "fixed"), (report.ignored, "ignored"), (report.known, "known"))
    infos = f"; {report.infos} info with --show-info" if report.infos else ""
    hidden = "".join(f", {number} {word}" for number, word in extra if number)
    nothing = "nothing left" if report.fixed else "nothing found"
    target = f"TensorFlow {report.target.tensorflow} ({report.target.source})"
    files = _count(report.files - len(report.not_analysed), "file")
    first = f"checked {files} for {target}: {found or nothing}{hidden}{infos}"
    if report.not_analysed:
        every = len(report.not_analysed) == report.files and not found
        first = _not_analysed(report) if every else f"{first}; {_not_analysed(report)}"
    fixes = Counter(r.safety for f in report.findings for r in f.remedies[:1] if r.fix)
    if not fixes:
        return first
    safe = f"{fixes['safe']} fixable with --fix" if fixes["safe"] else ""
    more = f"{fixes['unsafe']} more with --fix --unsafe-fixes" if fixes["unsafe"] else ""
    if more and not safe:
        more = more.replace(" more with", " fixable with")
    return f"{first}\n[*] {', '.join(part for part in (safe, more) if part)}"


def _not_analysed(report: CheckReport) -> str:
    """``2 files not analysed: no rule knows them (train.py, model.py)``."""
    names = [printable(path) for path in report.not_analysed]
    listed = ", ".join(names[:MOST_NAMED]) + (" ..." if len(names) > MOST_NAMED else "")
    return f"{_count(len(names), 'file')} not analysed: no rule knows {'them' if len(names) > 1 else 'it'} ({listed})"


def printable(text: str) -> str:
    """A text without what would steer a terminal: sources and names come from anywhere."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 or word == "info" else f"{number} {word}s"


def _head(finding: Finding, *, color: bool) -> str:
    remedy = finding.remedies[0] if finding.remedies else None
    mark = (
        f" {_paint('[*]', BLUE, color=color)}" if remedy is not None and remedy.fix and remedy.safety == "safe" else ""
    )
    code = _paint(finding.code, SEVERITY.get(finding.severity, BOLD), color=color)
    return f"{_paint(where(finding.where[0]), BOLD, color=color)}: {code}{mark} {printable(finding.title)}"


def _excerpt(finding: Finding, lines: Sequence[str], *, color: bool, width: int) -> list[str]:
    """The line with what is marked, one around it, the remedy and what a fix would do."""
    place = finding.where[0]
    notes = [f"help: {finding.remedies[0].text}"] if finding.remedies else []
    if finding.rare:
        notes.append(f"info: {finding.rare}")
    for remedy in finding.remedies[:1]:
        if remedy.fix:
            option = "--fix" if remedy.safety == "safe" else "--fix --unsafe-fixes"
            notes.append(f"{option}: {remedy.fix}. {finding.explanation}".rstrip())
    if not 1 <= place.line <= len(lines):
        return [_paint(f"  = {note}", DIM, color=color) for note in notes]
    shown = [n for n in (place.line - 1, place.line, place.line + 1) if 1 <= n <= len(lines)]
    shown = [n for n in shown if n == place.line or lines[n - 1].strip()]
    gutter = len(str(shown[-1]))
    room = max(width, MIN_WIDTH) - gutter - 3
    column = place.column or 1
    cut = max(0, cell_len(_flat(lines[place.line - 1][: column - 1])) - LEAD)
    cut = cut if cell_len(_flat(lines[place.line - 1])) > room else 0
    bar = _paint("|", BLUE, color=color)
    out = [f"{' ' * gutter} {bar}"]
    for number in shown:
        text = _window(_flat(lines[number - 1]), cut, room)
        out.append(f"{_paint(str(number).rjust(gutter), BLUE, color=color)} {bar} {text}".rstrip())
        if number == place.line:
            out.append(f"{' ' * gutter} {bar} {_marks(finding, lines[number - 1], cut, room, color=color)}".rstrip())
    out.append(f"{' ' * gutter} {bar}")
    return out + [f"{' ' * gutter} {_paint('=', BLUE, color=color)} {printable(note)}" for note in notes]


def _marks(finding: Finding, line: str, cut: int, room: int, *, color: bool) -> str:
    place = finding.where[0]
    begin = (place.column or 1) - 1
    one_line = place.end_line in (None, place.line) and place.end_column
    end = (place.end_column or 1) - 1 if one_line else len(line.rstrip())
    before, marked = cell_len(_flat(line[:begin])) - cut, cell_len(_flat(line[begin:end]))
    carets = "^" * max(1, min(marked, room - before))
    return f"{' ' * before}{_paint(carets, SEVERITY.get(finding.severity, BOLD), color=color)}"


def _flat(text: str) -> str:
    return printable(text).replace("\t", " " * TAB)


def _window(text: str, cut: int, room: int) -> str:
    """The part of a line that has room; what is cut shows an ellipsis."""
    if not cut and cell_len(text) <= room:
        return text
    while cut and text and cell_len(text[0]) <= cut:
        cut -= cell_len(text[0])
        text = text[1:]
    while cell_len(text) > room:
        text = text[: -max(1, (cell_len(text) - room) // 2)]
    return text


def _paint(text: str, style: str, *, color: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if color else text
