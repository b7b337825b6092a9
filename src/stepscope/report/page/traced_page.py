"""The page's sections on op traces: time of traced steps, their input, idle times, and what was recorded.

docs/op-traces.md explains the figures. Devices that were not captured are never called idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.report.components import COMPONENTS
from stepscope.report import capture_text, op_trace_text
from stepscope.report.marked import Html
from stepscope.report.page import bars, traced_rows
from stepscope.report.page.charts import Key
from stepscope.report.page.tables import cells, code, paragraphs, table
from stepscope.report.words import percent
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.model.report.op_summary import TracedIdle, TracedSteps
    from stepscope.model.report.report import Report

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


def page(report: Report) -> Html:
    """The section on the traced steps; empty without an op trace that contains ops."""
    traced = report.traced
    if traced is None or not traced.parts:
        return Html()
    cards = [_split(report, traced), *_grid([_parts(traced), _idle(traced.idle)])]
    return Html().join([*cards, _transfers(traced), _pipeline(traced), _gains(traced)])


def recorded(report: Report) -> Html:
    """The section on the contents of the op traces; empty without any."""
    rows = []
    for trace in report.op_traces:
        lines = paragraphs(text for label, text in op_trace_text.lines_of(trace) if label == "steps")
        said = {label: text for label, text in op_trace_text.lines_of(trace) if label != "steps"}
        rows.append(
            Html(
                '<th scope="row">{}</th><td>{}</td><td class="n">{:,}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>'
            ).format(
                code(trace.file or trace.name),
                trace.format,
                trace.events,
                lines,
                said.get("captured", ""),
                said.get("no events", ""),
                said.get("omitted", ""),
            )
        )
    if not rows:
        return Html()
    head = ("Trace", "Format", "Events", "Steps", "Captured", "No events", "Omitted")
    return Html('<div class="card recorded">{}</div>').format(table(head, rows, numeric=(2,)))


def _split(report: Report, traced: TracedSteps) -> Html:
    shown = [
        bars.BarPart(part_class(p.part), traced_rows.part_word(p.part), p.ratio, p.ns_per_step) for p in traced.parts
    ]
    said = ", ".join([traced_rows.whole(traced), *traced_rows.hidden_items(traced)])
    note = f"{said}{f' ({traced.name})' if traced.name else ''}."
    cost = next((c for c in report.overhead.captures if f"capture:{c.id}" == traced.capture), None)
    if cost is not None:
        note += f" Captured: {capture_text.line(cost)}."
    bar = bars.step("traced-step", "The traced step", shown)
    others = Html().join(
        [Html('<p class="note">Other file {}.</p>').format(line) for line in traced_rows.other_lines(traced)]
    )
    return Html('<div class="card"><p class="note">{}</p>{}{}</div>').format(note, bar.markup, others)


def _grid(cards: Iterable[Html]) -> Sequence[Html]:
    there = [card for card in cards if card]
    return [Html('<div class="grid charts top">{}</div>').format(Html().join(there))] if len(there) > 1 else there


def _parts(traced: TracedSteps) -> Html:
    rows = []
    for part in traced.parts:
        swatch = bars.swatch(Key(css=part_class(part.part), kind="box", label=""))
        rows.append(
            Html('<th scope="row" class="key">{}{}</th><td class="n">{} %</td><td class="n">{}</td><td>{}</td>').format(
                swatch,
                traced_rows.part_word(part.part),
                percent(part.ratio),
                format_ns(part.ns_per_step),
                traced_rows.part_meaning(part.part),
            )
        )
    each = "Per step" if traced.count else "Total"
    return Html('<div class="card">{}</div>').format(table(("Part", "Share", each, "Meaning"), rows, numeric=(1, 2)))


def _idle(idle: TracedIdle | None) -> Html:
    if idle is None:
        return Html()
    rows = [cells(row, numeric=(0, 1)) for row in traced_rows.gap_rows(idle)]
    head = [title.capitalize() for title in traced_rows.GAP_HEAD]
    more = f"{idle.count:,} gaps of a microsecond or more; the longest:" if rows else "No gap of a microsecond or more."
    return Html('<div class="card"><h3>Device idle times</h3><p class="note">{}. {}</p>{}</div>').format(
        traced_rows.idle_text(idle), more, table(head, rows, numeric=(0, 1)) if rows else Html()
    )


def _transfers(traced: TracedSteps) -> Html:
    order = traced.transfers
    if order is None:
        return Html()
    rows = [
        Html('<th scope="row">{}</th>{}').format(code(name), cells(rest, numeric=traced_rows.TRANSFER_NUMERIC, first=1))
        for name, *rest in traced_rows.transfer_rows(order)
    ]
    head = [title.capitalize() for title in traced_rows.TRANSFER_HEAD]
    more = f" {order.more:,} more, most of them small, are left out." if order.more else ""
    note = (
        f"{traced_rows.transfers_text(order, traced.mean_ns)}. The most urgent first: it has the longest chain of work "
        f"after it. Times from the step's start on {order.device}.{more}"
    )
    return Html('<div class="card"><h3>Order of transfers</h3><p class="note">{}</p>{}</div>').format(
        note, table(head, rows, numeric=traced_rows.TRANSFER_NUMERIC)
    )


def _pipeline(traced: TracedSteps) -> Html:
    if not traced.pipeline:
        return Html()
    rows = []
    for stage, row in zip(traced.pipeline, traced_rows.stage_rows(traced), strict=True):
        depth = f"d{min(stage.depth, MAX_DEPTH)}"
        shown = cells(row[1:], numeric=traced_rows.STAGE_NUMERIC, first=1)
        css = f"{depth} blocking" if stage.blocking else depth
        rows.append(Html('<th scope="row" class="{}">{}</th>{}').format(css, row.name, shown))
    head = [title.capitalize() for title in traced_rows.STAGE_HEAD]
    note = f"{traced.batches:,} batches. The step calls the first stage; each stage calls those indented below it."
    return Html(
        '<div class="card tree"><h3>The input pipeline</h3><p class="note">{} Bottleneck: {}.</p>{}</div>'
    ).format(note, traced_rows.blocking(traced), table(head, rows, numeric=traced_rows.STAGE_NUMERIC))


MAX_DEPTH = 9
"""Deepest indentation; deeper stages are not indented further."""


def _gains(traced: TracedSteps) -> Html:
    if not traced.gains:
        return Html()
    rows = [
        Html('<th scope="row">{}</th><td>{}</td><td class="n">{}</td><td class="n">{}</td>').format(
            code(name), code(kind), share, gain
        )
        for name, kind, share, gain in traced_rows.gain_rows(traced.gains)
    ]
    head = [title.capitalize() for title in traced_rows.GAIN_HEAD]
    note = (
        "Estimated from the critical path of the steps closest to the median: the saving per step if an op on it took "
        "half its time. The smaller figure is certain; the larger one is half the op's time."
    )
    return Html('<div class="card"><h3>What would make the step shorter</h3><p class="note">{}</p>{}</div>').format(
        note, table(head, rows, numeric=(2, 3))
    )
