"""What is said of a capture: on the terminal when it has been made, and in reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports.words import plural, printable
from stepscope.units import format_bytes, format_ns

if TYPE_CHECKING:
    from stepscope.model.overhead import Capture
    from stepscope.model.status import LiveCapture


def cost(capture: Capture | LiveCapture) -> str:
    """``traced steps +1.2 % (-0.5 to +2.9) against their neighbours, 120 ms in all``."""
    total = f"{format_ns(capture.cost_ns)} in all"
    if capture.ratio is None or capture.low is None or capture.high is None:
        return f"too few steps to compare, {total}"
    interval = f"{100 * capture.low:+.1f} to {100 * capture.high:+.1f}"
    return f"traced steps {100 * capture.ratio:+.1f} % ({interval}) against their neighbours, {total}"


def render(capture: LiveCapture, *, session: str) -> str:
    """Lines for the terminal of who asked for it."""
    what = f"{plural(capture.steps, 'step')} of {printable(capture.title)}" if capture.steps else "no whole step"
    lines = [
        f"traced    {what} in {format_ns(capture.recorded_ns)} \u00b7 {format_bytes(capture.bytes)}",
        f"cost      {cost(capture)}",
    ]
    if capture.text:
        lines.append(f"note      {printable(capture.text)}")
    lines.append(f"session   {printable(session)} \u00b7 stepscope report shows it when the job has ended")
    return "\n".join(lines) + "\n"
