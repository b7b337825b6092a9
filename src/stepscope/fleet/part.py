"""One part of one session: all of its rows, and the name of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.fleet import about, costs, sampled, schema
from stepscope.fleet.part_names import PartName, digest
from stepscope.fleet.places import shortened
from stepscope.fleet.rows import Row, encoded
from stepscope.launcher.mask import mask_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Session


class Part(Struct, frozen=True):
    """A part, ready to be sent."""

    name: PartName
    data: bytes


def of(session: Session, report: Report, *, restarts: str = "", sources: bool = False) -> Part:
    """The part of an ended session.

    Args:
        session: as read.
        report: its report.
        restarts: id of the session that this one is the next attempt of; "": of none that is known.
        sources: whether the command's arguments and the text of the lines that rows name are in it.
    """
    cwd = session.manifest.cwd
    rows = [
        *about.rows(session, report, restarts=restarts, sources=sources),
        *costs.rows(report, cwd),
        *sampled.rows(session, report.line_heat, about.cpu_ns(session)),
    ]
    if sources:
        rows += _source_rows(session, rows, cwd)
    data = encoded(session.manifest.id, rows)
    name = PartName(
        session=session.manifest.id, version=schema.VERSION, hash=digest(data), day=about.day_of(session.manifest)
    )
    return Part(name, data)


def _source_rows(session: Session, rows: Sequence[Row], cwd: str) -> Iterator[Row]:
    """The text of each line that a row names, where the session has its file."""
    texts = {shortened(file, cwd): mask_source(text).splitlines() for file, text in session.sources.items()}
    for file, line in sorted({(row.file, row.line) for row in rows if row.file in texts and row.line}):
        if line <= len(texts[file]):
            yield Row(kind="source", name="", file=file, line=line, text=texts[file][line - 1].strip())
