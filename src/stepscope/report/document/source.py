"""Static findings in addition to the measured ones: rules say what may be slow, not what was."""

from __future__ import annotations

from stepscope.report import words
from stepscope.report.blocks import At, Code, Listed, Paragraph, Table, columns
from stepscope.report.lines import NO_BREAK, SEPARATOR
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where

HEAD = columns("Rule | What | Where | In this run | Remedy")


def _lines(asked: Asked) -> Said:
    """One line for static findings without a measured cost: they are not findings of this run."""
    check = asked.report.source_check
    items = words.source_items(check)
    if items and check is not None:
        command = words.printable(check.command).replace(" ", NO_BREAK)
        yield Lines(label="source", texts=[f"{SEPARATOR.join(items)}: {command}"], where=Where.BELOW)


def _blocks(asked: Asked) -> Blocks:
    check = asked.report.source_check
    if check is None:
        return
    yield Paragraph(f"Static check: {words.checked_sources(check)}.", "note")
    rows = [(f.code, f.title, At(f.where[0]), words.seen_text(f), f.remedies[0].text) for f in check.findings]
    yield Table(HEAD, rows)
    if check.command:
        yield Paragraph(("To list all:", Code(check.command)), "note")
    yield Listed([f"not checked: {text}" for text in check.left_out])


SECTION = Section(key="source", title="In the source", lines=_lines, blocks=_blocks)
