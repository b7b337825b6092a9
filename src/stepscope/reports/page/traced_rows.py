"""Traced steps as rows of text that terminal, Markdown and page share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stepscope.derive.optrace.steps.step_parts import PARTS
from stepscope.reports import words
from stepscope.reports.page import op_rows
from stepscope.units import format_ns, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.op_summary import TracedGain, TracedIdle, TracedPart, TracedSteps

PART_WORDS = {
    "device-compute": "device compute",
    "device-gap": "gaps between kernels",
    "device-wait": "device waits for another",
    "collective": "exchange",
    "compile": "compiling",
    "host-compute": "ops on the CPU",
    "host-python": "Python in ops",
    "launch": "launching",
    "runtime": "framework runtime",
    "scheduling": "not scheduled",
}
"""What parts are called whose own name is not it."""
SEPARATOR = " \u00b7 "
SMALL = 0.005
"""Parts below half a percent are left out where there is little room."""
STAGE_HEAD = ("stage", "work per batch", "at a time", "ready", "calls", "ops of its function")
STAGE_NUMERIC = range(1, 5)
GAP_HEAD = ("at", "lasts", "the host meanwhile")
GAIN_HEAD = ("op", "type", "share of the path", "the step would be shorter by")


class StageRow(NamedTuple):
    """One stage of the pipeline; columns as ``STAGE_HEAD``."""

    name: str
    work: str
    parallelism: str
    ready: str
    calls: str
    ops: str


def part_word(part: str) -> str:
    """What a part of the traced steps is called."""
    return PART_WORDS.get(part) or words.component_word(part)


def part_meaning(part: str) -> str:
    """What it is."""
    return PARTS.get(part, "")


def part_items(parts: tuple[TracedPart, ...]) -> list[str]:
    """``input wait 60 %``, the largest first, without the small ones."""
    return [f"{part_word(p.part)} {words.percent(p.ratio)} %" for p in parts if p.ratio >= SMALL]


def whole(traced: TracedSteps) -> str:
    """``27.8 ms in the mean of 11 traced steps``."""
    if not traced.count:
        return f"{format_ns(traced.mean_ns)} of trace, no steps seen"
    steps = words.plural(traced.count, "traced step")
    return f"{format_ns(traced.mean_ns)} in the mean of {steps}"


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
    """``stage Map works 25.8 ms per batch, one call at a time (PyFunc)``; empty without a pipeline."""
    stage = next((s for s in traced.pipeline if s.blocking), None)
    if stage is None:
        return ""
    many = "one call at a time" if stage.parallelism <= 1 else f"{stage.parallelism} calls at a time"
    ops = f" ({', '.join(map(words.printable, stage.ops))})" if stage.ops else ""
    return f"stage {words.printable(stage.name)} works {format_ns(stage.self_ns_per_batch)} per batch, {many}{ops}"


def idle_text(idle: TracedIdle) -> str:
    """``/device:GPU:4 idle 25 % of the time, 10 % with nothing in its queue; longest 1.2 ms (launching)``."""
    text = f"{words.printable(idle.device)} idle {format_ratio(idle.ratio)} of the time"
    if idle.host_ratio >= SMALL:
        text += f", {format_ratio(idle.host_ratio)} with nothing in its queue"
    if idle.gaps:
        gap = idle.gaps[0]
        text += f"; longest {format_ns(gap.dur_ns)} ({part_word(gap.part)})"
    return text


def lines(traced: TracedSteps) -> list[tuple[str, str]]:
    """Label and text of the short form."""
    found = [("the step", SEPARATOR.join([whole(traced), *part_items(traced.parts)]))]
    if stage := blocking(traced):
        found.append(("input", stage))
    if traced.idle is not None and traced.idle.ratio >= SMALL:
        found.append(("idle", idle_text(traced.idle)))
    return found


def gap_rows(idle: TracedIdle) -> list[tuple[str, str, str]]:
    """The longest idle times."""
    return [(format_ns(gap.at_ns), format_ns(gap.dur_ns), part_word(gap.part)) for gap in idle.gaps]


def gain_rows(gains: tuple[TracedGain, ...]) -> list[tuple[str, str, str, str]]:
    """What would be saved if each took half of its time."""
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
