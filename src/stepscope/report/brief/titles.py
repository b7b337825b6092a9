"""Short titles: what is slow, and where, in at most 90 characters. The long text stays a finding's ``title``."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rich.cells import cell_len

from stepscope.report import verdict, words
from stepscope.report.lines import NO_BREAK, wrap

if TYPE_CHECKING:
    from stepscope.tables.findings import Finding, LineWork
    from stepscope.tables.place import Place

MOST = 90
"""Longest title."""
MOST_PLACE = 40
INSTANCE = "for instance at "
"""What stands before the place of a general finding: only a part of its time is there."""
ENDS = (re.compile(r";|: | \("), re.compile(r", "))
"""Where a sentence may end early: the first kind stands between a statement and its details, the second within both."""
LEAST = 12
"""Shortest beginning that says something: "small batches"."""
CUT = " \u2026"


def title(finding: Finding, room: int = MOST) -> str:
    """``augment runs as Python in the input pipeline, demo_train.py:33``, in at most so many columns."""
    room = min(room, MOST)
    where = at(finding.where[0]) if finding.where else ""
    said = words.printable(finding.title)
    if finding.does is not None and (reason := _with_reason(said, finding.does, where, room)):
        return reason
    whole = statement(said, room)
    if not where or re.search(rf"{re.escape(where)}(?!\d)", whole):
        return whole
    ends = [f", {INSTANCE}{where}"] if verdict.is_general(finding) else []
    shown = [f"{statement(said, room - cell_len(end))}{end}" for end in (*ends, f", {where}")]
    return next((one for one in shown if CUT not in one), shown[-1])


def _with_reason(said: str, does: LineWork, where: str, room: int) -> str:
    """``a sort of whole arrays, train.py:33``, behind what the title says first where that fits; "" without a reason,
    and of one that no stack shows where both do not fit.
    """
    if not does.short:
        return ""
    end = f"{words.printable(does.short)}, {where}"
    head = statement(said, room - cell_len(end) - 2)
    if CUT not in head:
        return f"{head}: {end}"
    return statement(end, room) if does.samples else ""


def at(place: Place) -> str:
    """The file's own name, and the line: ``demo_train.py:33``."""
    name = PurePosixPath(words.printable(place.file)).name or words.printable(place.file)
    line = f":{place.line}" if place.line else ""
    room = MOST_PLACE - len(line)
    return f"{cut(name, room)}{line}"


def statement(text: str, room: int) -> str:
    """The longest beginning of a text that is a whole statement and fits; else what fits of its words."""
    if cell_len(text) <= room:
        return text
    for ends in ENDS:
        fits = [text[: end.start()] for end in ends.finditer(text) if _whole(text[: end.start()])]
        fits = [said for said in fits if LEAST <= cell_len(said) <= room]
        if fits:
            return fits[-1]
    return cut(text, room)


def _whole(text: str) -> bool:
    return text.count("(") == text.count(")")


def cut(text: str, room: int) -> str:
    """The words of a text that fit, and an ellipsis if they are not all."""
    if cell_len(text) <= room:
        return text
    words_that_fit = wrap(text, max(room - len(CUT), 1))[0]
    return f"{words_that_fit.replace(NO_BREAK, ' ').rstrip(' ,:;')}{CUT}"
