"""Traced steps: where their time goes, their input, idle times. Devices that were not captured are never called idle.

docs/op-traces.md explains the figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.optrace.steps.step_parts import PARTS
from stepscope.model.report.components import COMPONENTS
from stepscope.report import capture_text, op_trace_text, words
from stepscope.report.blocks import Bar, Code, Grid, Heading, Key, Listed, Paragraph, Part, Table, coded, columns
from stepscope.report.document.traces import ops
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.op_summary import (
        OtherTrace,
        TracedGain,
        TracedIdle,
        TracedPart,
        TracedSteps,
        TransferOrder,
    )
    from stepscope.model.report.report import Report

PART_WORDS = {
    "device-compute": "device compute",
    "device-gap": "gaps between kernels",
    "device-wait": "waiting for another device",
    "collective": "communication",
    "compile": "compiling",
    "stage-to-device": "copy to device, on the host",
    "stage-from-device": "copy from device, on the host",
    "host-compute": "ops on the CPU",
    "host-python": "Python in ops",
    "launch": "launching ops",
    "runtime": "framework runtime",
    "scheduling": "not scheduled",
}
"""Display names of parts that differ from their identifiers."""
MIN_CALL = 0.3
"""Share of the idle time from which a call of the loop is named."""
SMALL = 0.005
"""Parts below half a percent are omitted from short lists."""
ENOUGH_BATCHES = 3
"""Of fewer batches no time of a stage is given."""
STAGE_HEAD = columns("Stage | Work per batch: | Parallel calls: | Buffered: | Calls: | Ops of its function")
GAP_HEAD = columns("At: | Duration: | Host activity")
TRANSFER_HEAD = columns("Parameter | From | Size: | Needed: | Came: | Waited: | Came before more urgent ones:")
GAIN_HEAD = columns("Op | Type | Share of the path: | Step shorter by:")
COPIES = ("copy-to-device", "stage-to-device", "copy-from-device", "stage-from-device", "copy-on-device")
IDLE = ("device-gap", "device-wait", "scheduling")
"""Parts in which nothing works for the step; drawn hatched."""
_OWN = frozenset({"device-compute", "host-compute", "host-python", "collective", "launch", "runtime", "compile"})
CAPTURES = 3
"""Captures in the terminal."""


def part_word(part: str) -> str:
    """Display name of a part of the traced steps."""
    return PART_WORDS.get(part) or words.component_word(part)


def part_items(parts: tuple[TracedPart, ...]) -> list[str]:
    """``input wait 60 %``, the largest first, without the small ones."""
    return [f"{part_word(p.part)} {words.percent(p.ratio)} %" for p in parts if p.ratio >= SMALL]


def whole(traced: TracedSteps) -> str:
    """``27.8 ms on average over 11 traced steps``, of several files with the name of theirs."""
    of_file = f" of {words.printable(traced.file)}" if traced.file else ""
    if not traced.count:
        return f"{format_ns(traced.mean_ns)} of trace, without steps{of_file}"
    return f"{_mean(traced)}{of_file}"


def other_lines(traced: TracedSteps) -> list[str]:
    """``rank_a.json: 100 ms on average over 5 traced steps · other Python 90 %`` for each other file."""
    return [
        words.SEPARATOR.join([f"{words.printable(one.file)}: {_mean(one)}", *part_items(one.parts)])
        for one in traced.others
    ]


def _mean(steps: TracedSteps | OtherTrace) -> str:
    return f"{format_ns(steps.mean_ns)} on average over {words.plural(steps.count, 'traced step')}"


def hidden_items(traced: TracedSteps) -> list[str]:
    """``3.1 ms more of communication is hidden by compute``; empty where that is little."""
    said = traced.communication
    if said is None or said.hidden_ns < SMALL * traced.mean_ns:
        return []
    return [f"{format_ns(said.hidden_ns)} more of communication is hidden by compute"]


def blocking(traced: TracedSteps) -> str:
    """``stage Map takes 25.8 ms per batch, one call at a time (PyFunc)``; empty without a pipeline.

    Of a few batches it gives no time: calls for the batches before and after them count whole.
    """
    stage = next((s for s in traced.pipeline if s.blocking), None)
    if stage is None:
        return ""
    many = "one call at a time" if stage.parallelism <= 1 else f"{stage.parallelism} calls at a time"
    ops = f" ({', '.join(map(words.printable, stage.ops))})" if stage.ops else ""
    if traced.batches < ENOUGH_BATCHES:
        return f"stage {words.printable(stage.name)} needs the most time, {many}{ops}"
    return f"stage {words.printable(stage.name)} takes {format_ns(stage.self_ns_per_batch)} per batch, {many}{ops}"


def idle_text(idle: TracedIdle) -> str:
    """``/device:GPU:4 idle 25 % of the time, 10 % with an empty queue; longest 1.2 ms (launching ops)``."""
    text = f"{words.printable(idle.device)} idle {format_ratio(idle.ratio)} of the time"
    if idle.host_ratio >= SMALL:
        text += f", {format_ratio(idle.host_ratio)} with an empty queue"
    if idle.gaps:
        gap = idle.gaps[0]
        text += f"; longest {format_ns(gap.dur_ns)} ({part_word(gap.part)})"
    said = [f"{words.printable(f'{c.function} ({c.file}:{c.line})')} {format_ratio(c.ratio)}" for c in idle.calls]
    if idle.calls and idle.calls[0].ratio >= MIN_CALL:
        text += f"; meanwhile the loop called {said[0]} of it"
    return text


def lines(traced: TracedSteps) -> list[tuple[str, str]]:
    """Label and text of the short summary."""
    found = [("the step", words.SEPARATOR.join([whole(traced), *part_items(traced.parts), *hidden_items(traced)]))]
    if stage := blocking(traced):
        found.append(("input", f"bottleneck: {stage}"))
    if traced.idle is not None and traced.idle.ratio >= SMALL:
        found.append(("idle", idle_text(traced.idle)))
    if traced.transfers is not None:
        found.append(("transfers", transfers_text(traced.transfers, traced.mean_ns)))
    return [*found, *(("other file", line) for line in other_lines(traced))]


def transfers_text(order: TransferOrder, step_ns: int) -> str:
    """``6 parameters, 5 of them before a more urgent one; no op ran for 837 ms ...``."""
    count = len(order.transfers)
    items = [f"{words.plural(count, 'parameter')} received, {order.early:.2g} of them before a more urgent one"]
    if order.still_ns >= SMALL * step_ns:
        items.append(f"{format_ns(order.still_ns)} of the step without any op until one came")
        gain = order.gain_ns / step_ns if step_ns else 0.0
        items.append(f"in the best order the step is shorter by at most {format_ratio(gain)}")
    return ", ".join(items)


def transfer_rows(order: TransferOrder) -> list[tuple[str, ...]]:
    """What came, the most urgent first; columns as ``TRANSFER_HEAD``."""
    return [
        (
            ops.short_name(one.name),
            words.printable(one.sender),
            format_bytes(one.size_bytes),
            format_ns(one.needed_ns),
            format_ns(one.came_ns),
            format_ns(one.waited_ns),
            f"{one.early} of {order.steps}" if one.early else "",
        )
        for one in order.transfers
    ]


def _span(gain: TracedGain) -> str:
    low, high = f"{words.percent(gain.low)}", f"{words.percent(gain.high)}"
    return f"{high} %" if low == high else f"{low} to {high} %"


def part_class(part: str) -> str:
    """The CSS class that colours a part; components of level 0 have their usual colours."""
    if part in COPIES:
        return "c-copy"
    if part in IDLE:
        return "c-unmeasured"
    return f"c-{part}" if part in _OWN or part in COMPONENTS else "c-else"


def _lines(asked: Asked) -> Said:
    report = asked.report
    said = lines(report.traced) if report.traced is not None else []
    if words.is_imported(report):
        for label, text in (held := op_trace_text.imported(report)) + said:
            yield Lines(label=label, texts=[text], where=Where.IMPORTED, web=(label, text) in held)
        return
    captured = [capture_text.line(capture) for capture in report.overhead.captures if capture.kind == "ops"]
    yield Lines(label="captured", texts=captured[:CAPTURES], where=Where.BELOW)
    yield Lines(label="traced", texts=[text for _, text in said], where=Where.BELOW)


def _blocks(asked: Asked) -> Blocks:
    traced = asked.report.traced
    if traced is None or not traced.parts:
        return
    yield Paragraph(_note(asked.report, traced), "note")
    yield Bar(
        "The traced step",
        [Part(part_class(p.part), part_word(p.part), p.ratio, p.ns_per_step) for p in traced.parts],
    )
    yield Listed([text for _, text in lines(traced)[1:]])
    yield Grid([[_parts(traced)], [*_idle(traced.idle)]])
    yield from _transfers(traced)
    yield from _pipeline(traced)
    yield from _gains(traced)


def _note(report: Report, traced: TracedSteps) -> str:
    said = ", ".join([whole(traced), *hidden_items(traced)])
    cost = next((c for c in report.overhead.captures if f"capture:{c.id}" == traced.capture), None)
    captured = f" Captured: {capture_text.line(cost)}." if cost is not None else ""
    return f"{said}{f' ({traced.name})' if traced.name else ''}.{captured}"


def _parts(traced: TracedSteps) -> Table:
    each = "Per step" if traced.count else "Total"
    rows = [
        (
            Key(part_class(part.part), part_word(part.part)),
            f"{words.percent(part.ratio)} %",
            format_ns(part.ns_per_step),
            PARTS.get(part.part, ""),
        )
        for part in traced.parts
    ]
    return Table(columns(f"Part | Share: | {each}: | Meaning"), rows)


def _idle(idle: TracedIdle | None) -> Blocks:
    if idle is not None:
        more = f"{idle.count:,} gaps of a microsecond or more; the longest:"
        note = more if idle.gaps else "No gap of a microsecond or more."
        gaps = [(format_ns(gap.at_ns), format_ns(gap.dur_ns), part_word(gap.part)) for gap in idle.gaps]
        yield from _told("Device idle times", note, Table(GAP_HEAD, gaps, page=True))


def _told(title: str, note: str, table: Table) -> Blocks:
    return iter((Heading(title, page=True), Paragraph(note, "note", page=True), table))


def _transfers(traced: TracedSteps) -> Blocks:
    order = traced.transfers
    if order is None:
        return
    more = f" {order.more:,} more, most of them small, are left out." if order.more else ""
    note = (
        "The most urgent first: it has the longest chain of work after it. Times from the step's start on "
        f"{order.device}.{more}"
    )
    yield from _told("Order of transfers", note, Table(TRANSFER_HEAD, coded(transfer_rows(order), 0), page=True))


def _pipeline(traced: TracedSteps) -> Blocks:
    rows = [
        (
            "\u2007" * 2 * stage.depth + f"{words.printable(stage.name)}{' (blocking)' if stage.blocking else ''}",
            format_ns(stage.self_ns_per_batch),
            f"{stage.parallelism}",
            "" if stage.buffered is None else f"{stage.buffered:.1f}",
            f"{stage.calls:,}",
            ", ".join(words.printable(name) for name in stage.ops),
        )
        for stage in traced.pipeline
    ]
    if rows:
        note = (
            f"{words.plural(traced.batches, 'batch')}. "
            "The step calls the first stage; each stage calls those indented below it."
        )
        if traced.batches < ENOUGH_BATCHES:
            note += (
                " The times may be too large: of so few batches, calls for the batches before and after count whole."
            )
        yield from _told("The input pipeline", note, Table(STAGE_HEAD, rows, page=True))


def _gains(traced: TracedSteps) -> Blocks:
    """Savings if each op took half its time."""
    rows = [
        (
            Code(ops.short_name(gain.name)),
            Code(words.printable(gain.type) if gain.type != gain.name else ""),
            format_ratio(gain.path_ratio),
            _span(gain),
        )
        for gain in traced.gains
    ]
    if rows:
        note = (
            "Estimated from the critical path of the steps closest to the median: the saving per step if an op on it "
            "took half its time. The smaller figure is certain; the larger one is half the op's time."
        )
        yield from _told("What would make the step shorter", note, Table(GAIN_HEAD, rows, page=True))


SECTION = Section(key="traced", title="Traced steps", lines=_lines, blocks=_blocks)
