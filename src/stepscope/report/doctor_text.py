"""The doctor's report for people: one line for each check, followed by reason and remedy where needed."""

from __future__ import annotations

import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from stepscope.check.reports.check_text import printable
from stepscope.model.report.doctor import Check, DoctorReport
from stepscope.tables.units import format_bytes, format_ns

if TYPE_CHECKING:
    from stepscope.model.session.replays import Roofs
    from stepscope.tables.page_walks import PageWalks

_TITLES = {
    "profiling": "What stepscope can see",
    "cpu": "Processors",
    "memory": "Memory",
    "gpu": "GPUs",
    "libraries": "Libraries",
}
_MARKS = {"ok": "ok", "note": "note", "change": "CHANGE", "blind": "blind"}
_COLORS = {"ok": "2", "note": "1;36", "change": "1;31", "blind": "1;33"}
_MARK_WIDTH = 8
_TITLE_WIDTH = 26
_MIN_WIDTH = 60
_GIGA = 1e9


def render(report: DoctorReport, *, color: bool = False, width: int = 120) -> str:
    """The report; each line ends in a newline. ``width``: columns of the terminal."""
    lines = [f"{report.host} \u00b7 Linux {report.kernel} \u00b7 {report.python}"]
    for group, checks in groupby(report.checks, key=lambda check: check.group):
        lines += ["", _paint(_TITLES[group], "1", color=color)]
        for check in checks:
            lines += _lines(check, color=color, width=max(width, _MIN_WIDTH))
    return "".join(f"{line}\n" for line in [*lines, "", _summary(report)])


def _lines(check: Check, *, color: bool, width: int) -> list[str]:
    mark = _paint(_MARKS[check.outcome].ljust(_MARK_WIDTH), _COLORS[check.outcome], color=color)
    indent = _MARK_WIDTH + _TITLE_WIDTH
    found = _wrapped(check.found, width - indent)
    lines = [mark + check.title.ljust(_TITLE_WIDTH) + found[0], *(" " * indent + line for line in found[1:])]
    for text in (check.why, f"-> {check.remedy}" if check.remedy else ""):
        if text:
            lines += [" " * indent + line for line in _wrapped(text, width - indent)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width, break_long_words=False, break_on_hyphens=False) or [""]


def _summary(report: DoctorReport) -> str:
    counts = Counter(check.outcome for check in report.checks)
    parts = [
        f"{counts['change']} to change" if counts["change"] else "nothing to change",
        f"{counts['note']} worth knowing" if counts["note"] else "",
        f"{counts['blind']} not or only partly checked" if counts["blind"] else "",
        f"{counts['ok']} ok",
    ]
    return " \u00b7 ".join(filter(None, parts))


def _paint(text: str, code: str, *, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text


def roofs(found: Roofs, path: str) -> str:
    """What was measured, as lines that end in a newline."""
    lines = [
        f"products    {found.flops_per_s / _GIGA:,.1f} GFLOP/s (float32, all threads)",
        f"memory      {found.memory_bytes_per_s / _GIGA:,.1f} GB/s (all threads)",
        *(f"copies      {rate / _GIGA:,.1f} GB/s in {format_bytes(size)} (one thread)" for size, rate in found.copies),
        f"small op    {format_ns(round(found.fixed_ns))}",
        f"kept in     {path}",
    ]
    return "\n".join(lines) + "\n"


def page_walks(walks: PageWalks) -> str:
    """What a TLB miss costs, as lines that end in a newline."""
    rows = [f"{format_ns(round(point.walk_ns))} at most, in {format_bytes(point.bytes)}" for point in walks.points]
    return "".join(f"TLB miss    {row}\n" for row in (*rows, *filter(None, [walks.problem])))
