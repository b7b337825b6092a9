"""Traced steps as text rows shared by terminal, Markdown and page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stepscope.derive.optrace.steps.step_parts import PARTS
from stepscope.report import words
from stepscope.report.page import op_rows
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
SEPARATOR = " \u00b7 "
MIN_CALL = 0.3
"""Share of the idle time from which a call of the loop is named."""
SMALL = 0.005
"""Parts below half a percent are omitted from short lists."""
STAGE_HEAD = ("stage", "work per batch", "parallel calls", "buffered", "calls", "ops of its function")
STAGE_NUMERIC = range(1, 5)
GAP_HEAD = ("at", "duration", "host activity")
TRANSFER_HEAD = ("parameter", "from", "size", "needed", "came", "waited", "came before more urgent ones")
TRANSFER_NUMERIC = range(2, 7)
GAIN_HEAD = ("op", "type", "share of the path", "step shorter by")


class StageRow(NamedTuple):
    """One stage of the pipeline; columns as ``STAGE_HEAD``."""

    name: str
    work: str
    parallelism: str
    ready: str
    calls: str
    ops: str


def part_word(part: str) -> str:
    """Display name of a part of the traced steps."""
    return PART_WORDS.get(part) or words.component_word(part)


def part_meaning(part: str) -> str:
    """Explanation of a part."""
    return PARTS.get(part, "")


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
        SEPARATOR.join([f"{words.printable(one.file)}: {_mean(one)}", *part_items(one.parts)]) for one in traced.others
    ]


def _mean(steps: TracedSteps | OtherTrace) -> str:
    return f"{format_ns(steps.mean_ns)} on average over {words.plural(steps.count, 'traced step')}"


def hidden_items(traced: TracedSteps) -> list[str]:
    """``3.1 ms more of communication is hidden by compute``; empty where that is little."""
    said = traced.communication
    if said is None or said.hidden_ns < SMALL * traced.mean_ns:
        return []
    return [f"{format_ns(said.hidden_ns)} more of communication is hidden by compute"]


def stage_rows(traced: TracedSteps) -> list[StageRow]:
    """The tree, one row for each stage."""
    return [
        StageRow(
            f"{words.printable(stage.name)}{' (blocking)' if stage.blocking else ''}",
            format_ns(stage.self_ns_per_batch),
            f"{stage.parallelism}",
            "" if stage.buffered is None else f"{stage.buffered:.1f}",
            f"{stage.calls:,}",
            ", ".join(words.printable(name) for name in stage.ops),
        )
        for stage in traced.pipeline
    ]


def blocking(traced: TracedSteps) -> str:
    """``stage Map takes 25.8 ms per batch, one call at a time (PyFunc)``; empty without a pipeline."""
    stage = next((s for s in traced.pipeline if s.blocking), None)
    if stage is None:
        return ""
    many = "one call at a time" if stage.parallelism <= 1 else f"{stage.parallelism} calls at a time"
    ops = f" ({', '.join(map(words.printable, stage.ops))})" if stage.ops else ""
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
    found = [("the step", SEPARATOR.join([whole(traced), *part_items(traced.parts), *hidden_items(traced)]))]
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
            op_rows.short_name(one.name),
            words.printable(one.sender),
            format_bytes(one.size_bytes),
            format_ns(one.needed_ns),
            format_ns(one.came_ns),
            format_ns(one.waited_ns),
            f"{one.early} of {order.steps}" if one.early else "",
        )
        for one in order.transfers
    ]


def gap_rows(idle: TracedIdle) -> list[tuple[str, str, str]]:
    """The longest idle periods."""
    return [(format_ns(gap.at_ns), format_ns(gap.dur_ns), part_word(gap.part)) for gap in idle.gaps]


def gain_rows(gains: tuple[TracedGain, ...]) -> list[tuple[str, str, str, str]]:
    """Savings if each op took half its time."""
    return [
        (
            op_rows.short_name(gain.name),
            words.printable(gain.type) if gain.type != gain.name else "",
            format_ratio(gain.path_ratio),
            _span(gain),
        )
        for gain in gains
    ]


def _span(gain: TracedGain) -> str:
    low, high = f"{words.percent(gain.low)}", f"{words.percent(gain.high)}"
    return f"{high} %" if low == high else f"{low} to {high} %"
