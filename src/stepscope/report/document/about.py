"""The run, what measuring it cost, and what stepscope says of itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.report import capture_text, verdict, words
from stepscope.report.blocks import Code, Facts, Grid, Heading, Listed, Paragraph, Stacked
from stepscope.report.memory import room_words
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.report.overhead import Overhead
    from stepscope.model.report.report import Report
    from stepscope.report.blocks import Block, Text

TOP = 3
"""Diagnostics in the terminal."""


def _lines(asked: Asked) -> Said:
    said = list(_diagnostics(asked.report))
    for code, text in said[:TOP]:
        yield Lines(label="note", texts=[f"{code} {text}"], where=Where.BELOW)
    if len(said) > TOP:
        more = f"+ {len(said) - TOP} more in the report"
        yield Lines(label="", texts=[more], where=Where.BELOW, style="dim")


def _diagnostics(report: Report) -> Iterator[tuple[str, str]]:
    for code, text, count in words.merged_diagnostics(report.diagnostics):
        yield code, f"{text} ({count} times)" if count > 1 else text


def _blocks(asked: Asked) -> Blocks:
    report = asked.report
    said = [(Code(code), text) for code, text in _diagnostics(report)]
    if words.is_imported(report):
        yield Paragraph("Imported: recorded by another tool; stepscope itself measured nothing.")
        yield Listed(said) if said else Paragraph("Nothing was repaired and nothing is missing.")
        return
    run: list[Block] = [Heading("The run", page=True), Facts(_run(report), page=True)]
    yield Grid([run, [Heading("Profiling overhead"), Facts(_cost(report.overhead))]])
    yield Heading("Diagnostics of stepscope itself")
    yield Listed(said) if said else Paragraph("No data was lost, and every probe attached.")


def _run(report: Report) -> list[tuple[str, Text]]:
    summary = report.session
    rows: list[tuple[str, Text]] = [
        ("Session", summary.id),
        ("Command", Code(shlex.join(summary.command))),
        ("Framework", words.framework_text(summary)),
        ("Hosts", f"{summary.hosts}"),
        ("Measured processes", f"{summary.processes}"),
        ("Roles", ", ".join(words.process_role_items(summary))),
        ("ONNX Runtime", Stacked(words.inference_items(summary))),
        ("Memory", Stacked(room_words.items(report.memory_room))),
        ("Run time", format_ns(summary.wall_ns) if summary.wall_ns else "unknown"),
        ("End", verdict.end_text(summary)),
    ]
    return [row for row in rows if row[1]]


def _cost(overhead: Overhead) -> list[tuple[str, str]]:
    each = f", {format_ns(overhead.record_ns)} each" if overhead.record_ns else ""
    whole = ("Captures in total", f"{100 * overhead.captures_ratio:.2f} % of the job's time")
    return [
        ("Share of step time", f"{100 * overhead.ratio:.2f} % ({100 * overhead.low:.2f}-{100 * overhead.high:.2f})"),
        ("Records", f"{overhead.records:,}{each}"),
        ("Sidecar", f"{100 * overhead.sidecar_core_ratio:.2f} % of one core"),
        *((f"Captured at {format_ns(one.at_ns)}", capture_text.line(one)) for one in overhead.captures),
        *([whole] if overhead.captures else []),
    ]


SECTION = Section(key="measuring", title="About this run", lines=_lines, blocks=_blocks)
