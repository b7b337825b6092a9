"""A comparison for people: text for a terminal, Markdown for a pull request's comment."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.cells import cell_len

from stepscope.model.report.compare import TIMED_MEAN
from stepscope.report import ledger_rows, words
from stepscope.report.marked import Md, code, listed, table
from stepscope.tables.units import format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.compare import ComparedSession, CompareReport, Difference, RowBasis, Section

CLOSE = 0.05
"""Smallest change that could have been seen, up to which no change beyond noise is called the same."""
MOSTLY = 0.5
"""Share of a difference from which one component makes most of it."""
_LONG = frozenset({"anatomy", "ops", "op-calls", "python", "ledger", "tasks"})
SHOWN = 8
"""Most components or lines of a section; further ones are in the JSON."""
_TITLES: dict[Section, str] = {
    "throughput": "throughput",
    "steps": "the step",
    "run": "the run",
    "ledger": "wall time by part",
    "tasks": "calls",
    "anatomy": "components, a timed step",
    "ops": "op time by line, a step",
    "op-calls": "ops, time of a call",
    "python": "Python lines, share of the samples",
}
_BASES: dict[RowBasis, str] = {
    "total": "same work",
    "counted": "counted",
    "timed": "timed",
    "ops": "ops",
    "samples": "samples",
    "run": "whole run",
}
_BASIS_SAID: dict[RowBasis, str] = {
    "total": "all of the same work",
    "counted": "all steps, those included that were only counted",
    "timed": "the steps that were timed",
    "run": "which may have done other work",
}
_NAMES = {
    "samples_per_s": "samples/s",
    "steps_per_s": "steps/s",
    "mean": "mean",
    TIMED_MEAN: "mean of the timed",
    "wall": "wall time",
    "memory_peak": "memory of all processes, peak",
    "device_memory_peak": "device memory, peak",
    "all": "all that both ran",
}
_DESIGNS = {
    "paired": "in pairs of rounds",
    "unpaired": "groups of runs",
    "within": "steps of one run a side",
}
_WHOLES = {"run": "the run", "ops": "for A's calls of the ops that both ran"}
_COLORS = {"faster": "32", "less": "32", "gone": "32", "slower": "31", "more": "31", "new": "31", "undecided": "2"}
_GATES = {"pass": "1;32", "slower": "1;31", "cannot-tell": "1;33"}
_HEAD = ("", "A", "B", "change", "basis", "interval", "noise hides", "verdict")
_PHASES: dict[str, str] = {phase: word for phase, (word, _) in ledger_rows.PHASES.items()}
_CODE = frozenset({"ops", "op-calls", "python", "tasks"})
_MAX_NAME = 56
_MIN_WIDTH = 60


def text(report: CompareReport, *, color: bool = False, width: int = 0) -> str:
    """For a terminal of ``width`` columns (0: sentences are not wrapped); each line ends in a newline."""
    decides = _decides(report)
    style = _COLORS.get(decides.verdict, "") if decides is not None else ""
    lines = [f"A  {_side(report.before)}", f"B  {_side(report.after)}", ""]
    lines += _sentence(f"verdict {verdict(report)}", style, width, color=color)
    if report.gate is not None:
        lines += _sentence(f"gate    {report.gate.text}", _GATES[report.gate.outcome], width, color=color)
    for note in report.notes:
        lines += _sentence(f"note    {words.printable(note)}", "", width, color=color)
    sections = _sections(report)
    titles = [title for title, _ in sections]
    rows = [_cells(row) for _, some in sections for row in some]
    widths = [max(map(cell_len, column)) for column in zip(_HEAD, *rows, strict=True)]
    widths[0] = max([widths[0], *map(cell_len, titles)])
    for title, some in sections:
        lines += ["", _row((title, *_HEAD[1:]), widths)]
        lines += [_colored(_row(_cells(row), widths), _COLORS.get(row.verdict, ""), color=color) for row in some]
    lines += ["", *_findings(report)] if report.findings else []
    lines += ["", f"stacks  {words.printable(report.stacks)}"] if report.stacks else []
    return "".join(f"{line.rstrip()}\n" for line in lines)


def render_markdown(report: CompareReport) -> Md:
    """Markdown (CommonMark with tables)."""
    parts = [Md("## stepscope: {}").format(verdict(report))]
    if report.gate is not None:
        parts.append(Md("**{}**").format(report.gate.text))
    parts.append(Md("- A: {}\n- B: {}").format(_side(report.before), _side(report.after)))
    parts.append(listed(report.notes))
    for title, rows in _sections(report):
        cells = [(_named(row), *_cells(row)[1:]) for row in rows]
        parts.append(table((title, " A", " B", " change", "basis", "interval", " noise hides", "verdict"), cells))
    if report.findings:
        parts.append(Md("### findings\n\n{}").format(listed(line.strip() for line in _findings(report))))
    if report.stacks:
        parts.append(Md("Stacks: {}").format(code(report.stacks)))
    return Md("\n\n").join(filter(None, parts)) + Md("\n")


def _decides(report: CompareReport) -> Difference | None:
    """The time that the verdict is about: the mean, or the median step where the mean is undecided and it is not."""
    main, typical = report.main, report.typical
    if main is not None and typical is not None and main.verdict == "undecided" != typical.verdict:
        return typical
    return main


def verdict(report: CompareReport) -> str:
    """The time that decides, as a sentence."""
    time = _decides(report)
    if time is None or time.ratio is None or time.before is None or time.after is None:
        return "no time can be compared"
    what = _WHOLES.get(report.basis) or f"a {report.basis}"
    median = " in the median" if time is report.typical else ""
    times = f"{_value(time, time.before)} to {_value(time, time.after)} {what}{median}"
    if report.design == "within" and time.smallest is not None:
        return _of_one_run(report, time, times)
    if time.low is None or time.high is None:
        return f"{_percent(time.ratio)} ({times}), without an interval"
    close = time.smallest is not None and time.smallest <= CLOSE
    open_ = "the same within noise" if close else "undecided"
    said = {"faster": "B is faster", "slower": "B is slower", "same": "B is as fast"}.get(time.verdict, open_)
    runs = f"{time.runs} run{'s' if time.runs > 1 else ''} a side"
    how = f"{_DESIGNS[report.design]}, {runs}, {100 * report.level:g} % interval"
    shown = f"{_percent(time.ratio)} time ({_interval(time)}), {times}"
    return f"{said}{_mostly(report, time)}: {shown}; {how}; noise hides changes {_smallest(time)}"


def _of_one_run(report: CompareReport, time: Difference, times: str) -> str:
    """The time that decides of one run a side: what these two runs took, and what would say that of the programs."""
    said = {"faster": "B took less time", "slower": "B took more time"}.get(time.verdict, "undecided")
    basis = f"; {_BASIS_SAID[time.basis]}" if time.basis in _BASIS_SAID else ""
    change = f"{_percent(time.ratio or 1.0)} time ({times}{basis})"
    needed = f"; about {time.runs_needed} a side would decide it" if time.runs_needed else ""
    return f"{said}{_mostly(report, time)}: {change}; from one run a side it is not known how much runs vary{needed}"


def _mostly(report: CompareReport, time: Difference) -> str:
    """The component that makes most of a decided difference, and changed the same way beyond noise; "" if none does."""
    main = report.main
    if time.verdict not in {"faster", "slower"} or main is None or main.before is None or main.after is None:
        return ""
    timed = next((row for row in report.differences if row.name == TIMED_MEAN), None)
    whole, of = (main, "") if timed is None else (timed, " of a timed step")
    change = (whole.after or 0.0) - (whole.before or 0.0)
    for row in report.differences:
        if row.section == "anatomy" and row.verdict in {time.verdict, "new", "gone"}:
            before, after = row.before or 0.0, row.after or 0.0
            if change and (after - before) / change >= MOSTLY:
                return f", mostly in {words.component_word(row.name)} ({format_ns(before)} to {format_ns(after)}{of})"
    return ""


def _sentence(line: str, style: str, width: int, *, color: bool) -> list[str]:
    """A labelled sentence, wrapped beyond its label."""
    parts = textwrap.wrap(line, max(width, _MIN_WIDTH), subsequent_indent=" " * 8) if width else [line]
    return [_colored(part, style, color=color) for part in parts]


def _colored(line: str, style: str, *, color: bool) -> str:
    return f"\x1b[{style}m{line}\x1b[0m" if color and style else line


def _side(sessions: Sequence[ComparedSession]) -> str:
    """The sessions of a side on one line."""
    first = sessions[0]
    steps = sum(one.steps for one in sessions)
    least = "at least " if any(one.steps_at_least for one in sessions) else ""
    items = [
        words.printable(first.path) + (f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""),
        f"{least}{words.plural(steps, 'step')}" if steps else "no steps seen",
        words.printable(first.step),
        words.printable(first.framework),
    ]
    return words.SEPARATOR.join(filter(None, items))


def _sections(report: CompareReport) -> list[tuple[str, list[Difference]]]:
    found = []
    for section, title in _TITLES.items():
        rows = [one for one in report.differences if one.section == section]
        rows = [one for one in (report.main, report.typical) if one is not None and one.section == section] + rows
        if rows:
            shown = rows[:SHOWN] if section in _LONG else rows
            per_sample = title.replace("a step", "a sample").replace("a timed step", "a sample of timed steps")
            found.append((per_sample if report.basis == "sample" else title, shown))
    return found


def _cells(row: Difference) -> tuple[str, ...]:
    return (
        _name(row),
        _value(row, row.before),
        _value(row, row.after),
        _percent(row.ratio) if row.ratio is not None else "",
        _BASES[row.basis],
        _interval(row),
        _smallest(row),
        row.verdict,
    )


def _name(row: Difference) -> str:
    if row.section == "anatomy":
        return words.component_word(row.name)
    if row.section == "ledger":
        return _PHASES.get(row.name, row.name)
    if row.section in _CODE:
        place = words.place_text(row.where, short=True) if row.where is not None else ""
        name = words.printable(row.name)
        found = f"{place}  {name}".strip()
        found = _NAMES.get(found, found)  # the row of all ops
        return found if len(found) <= _MAX_NAME else found[: _MAX_NAME - 1] + "\u2026"
    return _NAMES.get(row.name, row.name)


def _named(row: Difference) -> str:
    """The name as Markdown."""
    return code(_name(row)) if row.section in _CODE else _name(row)


def _value(row: Difference, value: float | None) -> str:
    if value is None:
        return "-"
    if row.unit == "ns":
        return format_ns(value)
    if row.unit == "bytes":
        return format_bytes(value)
    if row.unit == "count":
        return f"{value:,.0f}"
    return format_rate(value) if row.unit == "1/s" else f"{words.percent(value)} %"


def _percent(ratio: float) -> str:
    """A change: ``+8.1 %``; from three times on, ``3.2 x``."""
    if ratio >= _FAR:
        return f"over {_FAR} x"
    return f"{100 * (ratio - 1):+.1f} %" if ratio < _TIMES_FROM else f"{ratio:.3g} x"


_TIMES_FROM = 3.0
_FAR, _FAR_SHOWN = 100, 10
"""Ratio, and smallest relative change, from which the exact number says nothing more."""


def _interval(row: Difference) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"{_percent(row.low)} to {_percent(row.high)}"


def _smallest(row: Difference) -> str:
    if row.smallest is None:
        return ""
    return f"below {words.percent(min(row.smallest, _FAR_SHOWN))} %"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells in columns: numbers to the right, names and verdicts to the left."""
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        blank = " " * (width - cell_len(cell))
        padded.append(blank + cell if i in _NUMBERS else cell + blank)
    return "  ".join(padded)


_NUMBERS = frozenset({1, 2, 3, 6})


def _findings(report: CompareReport) -> list[str]:
    lines = []
    for one in report.findings:
        place = f"  {words.place_text(one.where, short=True)}" if one.where is not None else ""
        lines.append(f"{one.change:5} {one.code} {words.printable(one.title)} ({one.severity}){place}")
    return lines
