"""What the op traces hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import op_trace_text
from stepscope.report.blocks import Code, Stacked, Table, columns
from stepscope.report.section import Asked, Blocks, Section

if TYPE_CHECKING:
    from stepscope.model.report.op_summary import OpTraceSummary
    from stepscope.report.blocks import Text

HEAD = columns("Trace | Format | Events: | Steps | Captured | No events | Omitted")


def _blocks(asked: Asked) -> Blocks:
    if asked.report.op_traces:
        yield Table(HEAD, list(map(_row, asked.report.op_traces)))


def _row(trace: OpTraceSummary) -> list[Text]:
    said = op_trace_text.lines_of(trace)
    steps = [text for label, text in said if label == "steps"]
    rest = [dict(said).get(label, "") for label in ("captured", "no events", "omitted")]
    return [Code(trace.file or trace.name), trace.format, f"{trace.events:,}", Stacked(steps), *rest]


SECTION = Section(key="recorded", title="Op traces", blocks=_blocks)
