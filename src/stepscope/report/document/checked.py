"""What each detector said."""

from __future__ import annotations

from stepscope.report import checked_words, words
from stepscope.report.blocks import Outcome, Paragraph, Table, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Short, Where

HEAD = columns("Detector | Looks for | Outcome | Why it could not decide")


def _lines(asked: Asked) -> Said:
    checked = asked.report.checked
    short = [Short(checked_words.checked_short(checked))]
    texts = checked_words.checked_long(checked) if asked.verbose else short
    yield Lines(label="checked", texts=texts, where=Where.FIRST)


def _blocks(asked: Asked) -> Blocks:
    checked = asked.report.checked
    said = words.SEPARATOR.join(checked_words.checked_items(checked))
    yield Paragraph(f"{said[0].upper()}{said[1:]}.")
    rows = [
        (one.detector, one.name, Outcome(one.outcome, checked_words.outcome(one)), checked_words.why_not(one))
        for one in checked_words.in_order(checked)
    ]
    yield Table(HEAD, rows)


SECTION = Section(key="checked", title="Checks", lines=_lines, blocks=_blocks)
