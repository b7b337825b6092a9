"""The findings. The terminal lays them out by itself, between the head and the lines below."""

from __future__ import annotations

from stepscope.report import verdict, words
from stepscope.report.blocks import Found, Paragraph
from stepscope.report.section import Asked, Blocks, Section


def _blocks(asked: Asked) -> Blocks:
    report = asked.report
    if not words.significant(report):
        said = verdict.nothing_text(report)
        calm = report.findings or report.session.steps
        yield Paragraph(f"{said[0].upper()}{said[1:]}.", "calm" if calm else "")
    heat = {(line.file, line.line): line.ratio for line in report.line_heat}
    for number, finding in enumerate(report.findings, 1):
        yield Found(number, finding, heat)


SECTION = Section(key="findings", title="Findings", blocks=_blocks)
