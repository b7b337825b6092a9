"""The time that no finding explains, and the load of the machine, which slows all and explains none."""

from __future__ import annotations

from stepscope.report import verdict
from stepscope.report.section import Asked, Lines, Said, Section, Where


def _lines(asked: Asked) -> Said:
    yield Lines(label="unexplained", texts=[verdict.unexplained_text(asked.report)], where=Where.HEAD, web=True)
    if asked.report.session.steps:
        yield Lines(label="machine", texts=[verdict.machine_text(asked.report)], where=Where.HEAD)


SECTION = Section(key="unexplained", lines=_lines)
