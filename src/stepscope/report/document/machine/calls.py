"""System calls: how many, and which take the time of each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.blocks import Paragraph, Table, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_bytes, format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.machine.system_calls import CallRow, SystemCallsSummary

HEAD = columns("Thread | Call | On | Calls: | A step: | Of the time: | Mean: | Longest: | Bytes a call: | Failed:")
IN_HEAD = 3
"""Rows in the head of the terminal's report."""
MIN_IN_HEAD = 0.005
"""Share of the windows' time from which a row stands there."""


def rows(calls: SystemCallsSummary) -> list[tuple[str, ...]]:
    """All rows."""
    return [_row(one, calls.steps) for one in calls.rows]


def _row(one: CallRow, steps: int) -> tuple[str, ...]:
    return (
        words.printable(one.thread or str(one.native)) + (" (steps)" if one.of_steps else ""),
        words.printable(one.call),
        words.printable(one.target),
        f"{one.count:,}",
        format_rate(one.count / steps) if steps else "",
        format_ratio(one.ratio),
        format_ns(one.total_ns // one.count) if one.count else "",
        format_ns(one.longest_ns) if one.count else "",
        format_bytes(one.bytes // one.count) if one.bytes and one.count else "",
        f"{one.failed:,}" if one.failed else "",
    )


def said(calls: SystemCallsSummary) -> str:
    """``12,400 system calls (310 a step) in 5.00 s``."""
    each = f" ({format_rate(calls.count / calls.steps)} a step)" if calls.steps else ""
    some = "; some are missing, because too many different ones were made" if calls.full else ""
    return f"{calls.count:,} system calls{each} in {format_ns(calls.wall_ns)}{some}"


def lines(calls: SystemCallsSummary | None) -> list[str]:
    """Texts for the terminal: the sum, and the largest of the thread that makes the steps."""
    if calls is None:
        return []
    most = [row for row in calls.rows if row.of_steps and row.ratio >= MIN_IN_HEAD][:IN_HEAD]
    return [said(calls), *(_line(row, calls.steps) for row in most)]


def _line(one: CallRow, steps: int) -> str:
    on = f" {words.printable(one.target)}" if one.target else ""
    often = f"{format_rate(one.count / steps)} a step" if steps else f"{one.count:,} calls"
    size = f", {format_bytes(one.bytes // one.count)} each" if one.bytes and one.count else ""
    return f"{words.printable(one.call)}{on}: {format_ratio(one.ratio)} of the time, {often}{size}"


def _lines(asked: Asked) -> Said:
    yield Lines(label="calls", texts=lines(asked.report.system_calls), where=Where.HEAD)


def _blocks(asked: Asked) -> Blocks:
    calls = asked.report.system_calls
    if calls is not None:
        yield Paragraph(f"{said(calls)}.")
        yield Table(HEAD, rows(calls))


SECTION = Section(key="calls", title="System calls", lines=_lines, blocks=_blocks)
