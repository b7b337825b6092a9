"""The report's sections as data: the web page draws the blocks that Markdown and the offline page are written from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.model.api.rest_api import Said
from stepscope.report.blocks import Bar, Facts, Fence, Found, Grid, Heading, Listed, Paragraph, Table
from stepscope.tables.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.report.blocks import Block
    from stepscope.server.open_sessions import OpenSession

PlainBlock = Paragraph | Heading | Listed | Facts | Fence | Bar
EARLY = "Not analysed yet: findings come some seconds after the first steps."
"""What is said of a job that runs instead of a verdict."""


class NumberedFinding(Struct, frozen=True, kw_only=True, tag="found"):
    """A finding."""

    number: int
    """Number of the finding, from 1, as listed by /findings."""
    finding: Finding


class ReportSection(Struct, frozen=True, kw_only=True):
    """A section of the report."""

    key: str
    title: str
    blocks: tuple[PlainBlock | Table | NumberedFinding, ...]
    """Without its charts, which are made of /series: a section of charts alone has none."""


class SectionList(Struct, frozen=True, kw_only=True):
    """The report as Markdown and the offline page have it."""

    lines: tuple[Said, ...]
    """What the head of a report says and no section repeats; of other tools' files, what they hold."""
    items: tuple[ReportSection, ...]
    """Those with content, in their order."""


def sections(opened: OpenSession, *, running: bool = False) -> SectionList:
    """The sections. A job that runs and has no steps yet has no verdict."""
    from stepscope.report import words
    from stepscope.report.document import findings
    from stepscope.report.document.sections import SECTIONS
    from stepscope.report.section import Asked, Where

    report = opened.report
    asked, early, imported = Asked(report=report), running and not report.session.steps, words.is_imported(report)
    items = []
    for one in SECTIONS:
        blocks = list(one.blocks(asked))
        shown = tuple(_shown([Paragraph(EARLY)] if one is findings.SECTION else []) if early else _shown(blocks))
        items += [ReportSection(key=one.key, title=one.title, blocks=shown)] if blocks else []
    lines = (line for one in SECTIONS for line in one.lines(asked) if line.web and not early)
    said = (one for one in lines if one.where == Where.IMPORTED or not imported)
    return SectionList(
        lines=tuple(Said(label=one.label, text=text) for one in said for text in one.flat()), items=tuple(items)
    )


def _shown(blocks: Iterable[Block]) -> Iterator[PlainBlock | Table | NumberedFinding]:
    """Blocks without drawings and empty tables, those of a grid one after the other."""
    for one in blocks:
        if isinstance(one, Grid):
            for cell in one.cells:
                yield from _shown(cell)
        elif isinstance(one, Found):
            yield NumberedFinding(number=one.number, finding=one.finding)
        elif isinstance(one, Table):
            columns, rows = one.filled()
            if rows:
                yield replace(one, columns=columns, rows=rows)
        elif isinstance(one, PlainBlock):
            yield one
