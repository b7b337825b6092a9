"""Whether ops are as fast as they can be here, if they were run alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.blocks import Listed, Paragraph, Table, coded, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.limits import Limits, OpLimit

SHOWN = 12
"""Rows in Markdown and on the page; report.json has all."""
HEAD = columns(
    "Op | Inputs | Where | Share of compute: | In the steps: | Alone: | Reached: | Rate alone: | Of the roof: | Answer"
)
_GIGA = 1e9
_BUSY = 0.05
"""Share of the CPUs in use by others from which that is said."""


def _row(op: OpLimit) -> tuple[str, ...]:
    return (
        words.printable(op.type),
        ", ".join(words.printable(text) for text in op.inputs),
        f"{words.printable(op.file)}:{op.line}" if op.file else "",
        format_ratio(op.ratio),
        format_ns(op.step_ns),
        format_ns(op.alone_ns) if op.alone_ns else "",
        format_ratio(op.reached_ratio) if op.alone_ns else "",
        _rate(op) if op.alone_ns else "",
        format_ratio(op.roof_ratio) if op.roof_ratio else "",
        _answer(op),
    )


def _rate(op: OpLimit) -> str:
    """Operations per second, or bytes where an op does few."""
    if op.flops_per_s >= op.bytes_per_s:
        return f"{op.flops_per_s / _GIGA:,.1f} GFLOP/s"
    return f"{op.bytes_per_s / _GIGA:,.1f} GB/s"


def _answer(op: OpLimit) -> str:
    said = "as fast as it can be here" if op.proven else f"not proven: {words.printable(op.why)}"
    half = [text for text in op.cheaper if text.endswith("float16")]
    return f"{said}; {half[0]}" if half else said


def notes(limits: Limits) -> list[str]:
    """The roofs, and what limits the answer."""
    found = []
    roofs = limits.roofs
    if roofs is not None:
        found.append(
            f"the machine's roofs: {roofs.flops_per_s / _GIGA:,.1f} GFLOP/s in float32 products, "
            f"{roofs.memory_bytes_per_s / _GIGA:,.1f} GB/s in memory, {format_ns(round(roofs.fixed_ns))} for a small op"
        )
    if limits.others_cores >= _BUSY * limits.cores:
        found.append(f"other processes used {limits.others_cores:.1f} of {limits.cores} CPUs while the ops ran alone")
    if limits.problem:
        found.append(f"not all ops were run alone: {words.printable(limits.problem)}")
    return found


def _lines(asked: Asked) -> Said:
    limits = asked.report.limits
    if limits is not None:
        yield Lines(label="limits", texts=[limits.text, *notes(limits)[1:]], where=Where.BELOW)


def _blocks(asked: Asked) -> Blocks:
    limits = asked.report.limits
    if limits is None:
        return
    yield Paragraph(f"{limits.text}.")
    yield Table(HEAD, coded(map(_row, limits.ops[:SHOWN]), 0, 2))
    yield Listed(notes(limits))


SECTION = Section(key="limits", title="Limits", lines=_lines, blocks=_blocks)
