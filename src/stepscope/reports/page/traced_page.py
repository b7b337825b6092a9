"""The page's sections on op traces: time of traced steps, their input, idle times, and what was recorded.

docs/op-traces.md explains the figures. Devices that were not captured are never called idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.report.components import COMPONENTS
from stepscope.reports import capture_text, op_trace_text
from stepscope.reports.page import bars, traced_rows
from stepscope.reports.page.charts import Key
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import code, table
from stepscope.reports.words import percent
from stepscope.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.model.report.finding import Report
    from stepscope.model.report.op_summary import TracedIdle, TracedSteps

COPIES = ("copy-to-device", "stage-to-device", "copy-from-device", "stage-from-device", "copy-on-device")
IDLE = ("device-gap", "device-wait", "scheduling")
"""Parts in which nothing works for the step; drawn hatched."""
_OWN = frozenset({"device-compute", "host-compute", "host-python", "collective", "launch", "runtime", "compile"})


def part_class(part: str) -> str:
    """The CSS class that colours a part; components of level 0 keep their usual colours."""
    if part in COPIES:
        return "c-copy"
    if part in IDLE:
        return "c-unmeasured"
    return f"c-{part}" if part in _OWN or part in COMPONENTS else "c-else"


def page(report: Report) -> str:
    """The section on the traced steps; empty without an op trace that contains ops."""
    traced = report.traced
    if traced is None or not traced.parts:
        return ""
    cards = [_split(report, traced), *_grid([_parts(traced), _idle(traced.idle)])]
    return "".join([*cards, _transfers(traced), _pipeline(traced), _gains(traced)])


def recorded(report: Report) -> str:
    """The section on the contents of the op traces; empty without any."""
    rows = []
    for trace in report.op_traces:
        lines = "".join(f"<p>{escape(text)}</p>" for label, text in op_trace_text.lines_of(trace) if label == "steps")
        said = {label: text for label, text in op_trace_text.lines_of(trace) if label != "steps"}
        rows.append(
            f'<th scope="row">{code(trace.file or trace.name)}</th><td>{escape(trace.format)}</td>'
            f'<td class="n">{trace.events:,}</td><td>{lines}</td><td>{escape(said.get("captured", ""))}</td>'
            f"<td>{escape(said.get('no events', ''))}</td><td>{escape(said.get('omitted', ''))}</td>"
        )
    if not rows:
        return ""
    head = ("Trace", "Format", "Events", "Steps", "Captured", "No events", "Omitted")
    return f'<div class="card recorded">{table(head, rows, numeric=(2,))}</div>'


def _split(report: Report, traced: TracedSteps) -> str:
    shown = [bars.Part(part_class(p.part), traced_rows.part_word(p.part), p.ratio, p.ns_per_step) for p in traced.parts]
    said = ", ".join([traced_rows.whole(traced), *traced_rows.hidden_items(traced)])
    note = f"{said}{f' ({traced.name})' if traced.name else ''}."
    cost = next((c for c in report.overhead.captures if f"capture:{c.id}" == traced.capture), None)
    if cost is not None:
        note += f" Captured: {capture_text.line(cost)}."
    bar = bars.step("traced-step", "The traced step", shown)
    return f'<div class="card"><p class="note">{escape(note)}</p>{bar.markup}</div>'


def _grid(cards: Iterable[str]) -> Sequence[str]:
    there = [card for card in cards if card]
    return [f'<div class="grid charts top">{"".join(there)}</div>'] if len(there) > 1 else there


def _parts(traced: TracedSteps) -> str:
    rows = []
    for part in traced.parts:
        swatch = bars.swatch(Key(css=part_class(part.part), kind="box", label=""))
        rows.append(
            f'<th scope="row" class="key">{swatch}{escape(traced_rows.part_word(part.part))}</th>'
            f'<td class="n">{percent(part.ratio)} %</td><td class="n">{format_ns(part.ns_per_step)}</td>'
            f"<td>{escape(traced_rows.part_meaning(part.part))}</td>"
        )
    each = "Per step" if traced.count else "Total"
    return f'<div class="card">{table(("Part", "Share", each, "Meaning"), rows, numeric=(1, 2))}</div>'


def _idle(idle: TracedIdle | None) -> str:
    if idle is None:
        return ""
    rows = [
        f'<td class="n">{escape(at)}</td><td class="n">{escape(dur)}</td><td>{escape(what)}</td>'
        for at, dur, what in traced_rows.gap_rows(idle)
    ]
    head = [title.capitalize() for title in traced_rows.GAP_HEAD]
    more = f"{idle.count:,} gaps of a microsecond or more; the longest:" if rows else "No gap of a microsecond or more."
    return (
        f'<div class="card"><h3>Device idle times</h3><p class="note">{escape(traced_rows.idle_text(idle))}. '
        f"{more}</p>{table(head, rows, numeric=(0, 1)) if rows else ''}</div>"
    )


def _transfers(traced: TracedSteps) -> str:
    order = traced.transfers
    if order is None:
        return ""
    rows = [
        f'<th scope="row">{code(name)}</th><td>{escape(sender)}</td>'
        + "".join(f'<td class="n">{escape(text)}</td>' for text in figures)
        for name, sender, *figures in traced_rows.transfer_rows(order)
    ]
    head = [title.capitalize() for title in traced_rows.TRANSFER_HEAD]
    more = f" {order.more:,} more, most of them small, are left out." if order.more else ""
    note = (
        f"{traced_rows.transfers_text(order, traced.mean_ns)}. The most urgent first: it has the longest chain of work "
        f"after it. Times from the step's begin on {order.device}.{more}"
    )
    return (
        f'<div class="card"><h3>Order of transfers</h3><p class="note">{escape(note)}</p>'
        f"{table(head, rows, numeric=traced_rows.TRANSFER_NUMERIC)}</div>"
    )


def _pipeline(traced: TracedSteps) -> str:
    if not traced.pipeline:
        return ""
    rows = []
    for stage, row in zip(traced.pipeline, traced_rows.stage_rows(traced), strict=True):
        depth = f"d{min(stage.depth, MAX_DEPTH)}"
        cells = "".join(
            f'<td class="n">{escape(text)}</td>' if i in traced_rows.STAGE_NUMERIC else f"<td>{escape(text)}</td>"
            for i, text in enumerate(row[1:], 1)
        )
        css = f"{depth} blocking" if stage.blocking else depth
        rows.append(f'<th scope="row" class="{css}">{escape(row.name)}</th>{cells}')
    head = [title.capitalize() for title in traced_rows.STAGE_HEAD]
    note = f"{traced.batches:,} batches. The step calls the first stage; each stage calls those indented below it."
    return (
        f'<div class="card tree"><h3>The input pipeline</h3><p class="note">{escape(note)} Bottleneck: '
        f"{escape(traced_rows.blocking(traced))}.</p>{table(head, rows, numeric=traced_rows.STAGE_NUMERIC)}</div>"
    )


MAX_DEPTH = 9
"""Deepest indentation; deeper stages are not indented further."""


def _gains(traced: TracedSteps) -> str:
    if not traced.gains:
        return ""
    rows = [
        f'<th scope="row">{code(name)}</th><td>{code(kind)}</td><td class="n">{escape(share)}</td>'
        f'<td class="n">{escape(gain)}</td>'
        for name, kind, share, gain in traced_rows.gain_rows(traced.gains)
    ]
    head = [title.capitalize() for title in traced_rows.GAIN_HEAD]
    note = (
        "Estimated from the critical path of the steps closest to the median: the saving per step if an op on it took "
        "half its time. The smaller figure is certain; the larger one is half the op's time."
    )
    return (
        f'<div class="card"><h3>What would make the step shorter</h3><p class="note">{note}</p>'
        f"{table(head, rows, numeric=(2, 3))}</div>"
    )
