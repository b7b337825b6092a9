"""The findings. The terminal lays them out by itself, between the head and the lines below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import verdict, words
from stepscope.report.blocks import Found, Paragraph, Table, columns
from stepscope.report.section import Asked, Blocks, Section

if TYPE_CHECKING:
    from stepscope.tables.findings import Finding


def _blocks(asked: Asked) -> Blocks:
    report = asked.report
    if not words.significant(report):
        said = verdict.nothing_text(report)
        calm = report.findings or report.session.steps
        yield Paragraph(f"{said[0].upper()}{said[1:]}.", "calm" if calm else "")
    heat = {(line.file, line.line): line.ratio for line in report.line_heat}
    for number, finding in enumerate(report.findings, 1):
        yield Found(number, finding, _evidence(finding), heat)


def _evidence(finding: Finding) -> Table:
    rows = [
        (
            words.metric_text(one.metric),
            words.value_text(one.value, one.unit),
            "" if one.threshold is None else words.value_text(one.threshold, one.unit),
        )
        for one in finding.evidence
    ]
    return Table(columns("Evidence | Value: | Threshold:"), rows)


SECTION = Section(key="findings", title="Findings", blocks=_blocks)
