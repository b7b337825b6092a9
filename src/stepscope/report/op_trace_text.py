"""Contents of an op trace, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.tables.units import format_bytes, format_ns

if TYPE_CHECKING:
    from stepscope.model.report.op_summary import OpTraceSteps, OpTraceSummary, StackFile
    from stepscope.model.report.report import Report

_SHOWN_PLANES = 8
_SHOWN_STEPS = 4


def render(trace: OpTraceSummary) -> str:
    """The lines of one trace; each ends in a newline."""
    return "".join(f"{label:<12}{words.printable(text)}\n" for label, text in _lines("op trace", trace))


def imported(report: Report) -> list[tuple[str, str]]:
    """Label and text for the files of an imported session."""
    lines = [line for trace in report.op_traces for line in _lines("imported", trace)]
    lines += [("stacks", stacks_text(file)) for file in report.stack_files]
    return [(label, words.printable(text)) for label, text in lines]


def _lines(label: str, trace: OpTraceSummary) -> list[tuple[str, str]]:
    head = f"{trace.file or trace.name} · {trace.format} · {words.plural(trace.events, 'event')}"
    return [(label, head), *lines_of(trace)]


def stacks_text(file: StackFile) -> str:
    """``wall · 2 rows, 990 ms in all``."""
    total = {"ns": format_ns, "bytes": format_bytes}.get(file.unit, "{:,.0f}".format)(file.total)
    return f"{file.event or 'samples'} · {words.plural(file.rows, 'row')}, {total} in all"


def shown(report: Report) -> str:
    """The file that the report is about; "" of a session without op traces."""
    traced = report.traced
    about = next((one for one in report.op_traces if traced is not None and one.name == traced.trace), None)
    trace = about or next(iter(report.op_traces), None)
    if trace is None:
        return f"stacks · {stacks_text(report.stack_files[0])}" if report.stack_files else ""
    count = len(report.op_traces)
    of = f" · one of {count} files" if count > 1 else ""
    return f"{trace.file} · {trace.format} · {words.plural(trace.events, 'event')}{of}"


def lines_of(trace: OpTraceSummary) -> list[tuple[str, str]]:
    """Label and text for a trace's steps, planes, missing planes and omitted events."""
    lines = [("steps", steps_text(steps)) for steps in trace.steps[:_SHOWN_STEPS]]
    if not trace.steps:
        lines.append(("steps", "none found: no step markers, and no repeating work that takes most of the time"))
    captured = [f"{plane.name} ({words.plural(plane.events, 'event')})" for plane in trace.planes if plane.events]
    lines.append(("captured", _some(captured) or "nothing: no plane has events"))
    missing = [plane.name for plane in trace.planes if not plane.events]
    if missing:
        lines.append(("no events", f"{_some(missing)}: not captured, which does not mean idle"))
    if trace.left_out:
        lines.append(("omitted", ", ".join(f"{count:,} {reason}" for reason, count in trace.left_out.items())))
    return lines


def steps_text(steps: OpTraceSteps) -> str:
    """Number of steps, their duration, and how they were found."""
    times = format_ns(steps.median_ns)
    if steps.count > 1:
        times = f"median {times} ({format_ns(steps.min_ns)} to {format_ns(steps.max_ns)})"
    return f"{words.plural(steps.count, 'step')} · {times} · {steps.how} {steps.name}"


def _some(items: list[str]) -> str:
    shown = ", ".join(items[:_SHOWN_PLANES])
    rest = len(items) - _SHOWN_PLANES
    return f"{shown} and {rest} more" if rest > 0 else shown
