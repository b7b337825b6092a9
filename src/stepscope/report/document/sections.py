"""The sections of the report, in their order: the only list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.document import (
    about,
    checked,
    findings,
    input_stages,
    job,
    members,
    metrics,
    price,
    requests,
    source,
    stages,
    step,
    tasks,
    times,
    turns,
    unexplained,
)
from stepscope.report.document.machine import calls, links, memory, resources
from stepscope.report.document.traces import limits, ops, recorded, traced

if TYPE_CHECKING:
    from stepscope.report.section import Asked, Lines

SECTIONS = (
    step.SECTION,
    findings.SECTION,
    members.SECTION,
    job.SECTION,
    turns.SECTION,
    unexplained.SECTION,
    times.SECTION,
    resources.SECTION,
    metrics.SECTION,
    stages.SECTION,
    input_stages.SECTION,
    memory.SECTION,
    tasks.SECTION,
    requests.SECTION,
    traced.SECTION,
    ops.SECTION,
    calls.SECTION,
    limits.SECTION,
    links.SECTION,
    recorded.SECTION,
    checked.SECTION,
    source.SECTION,
    about.SECTION,
    price.SECTION,
)


def lines(asked: Asked) -> list[Lines]:
    """What all of them say in the terminal."""
    return [one for section in SECTIONS for one in section.lines(asked)]
