"""Texts about a capture: for the terminal when it is done, and for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.words import plural, printable
from stepscope.tables.units import format_bytes, format_ns

if TYPE_CHECKING:
    from stepscope.model.api.status import LiveCapture
    from stepscope.model.report.overhead import Capture

THOUSAND, MILLION = 1_000, 1_000_000


def cost(capture: Capture | LiveCapture) -> str:
    """``traced steps +1.2 % (-0.5 to +2.9) against neighbouring steps; total cost 120 ms``."""
    total = f"total cost {format_ns(capture.cost_ns)}"
    if capture.ratio is None or capture.low is None or capture.high is None:
        return f"too few steps to compare; {total}"
    interval = f"{100 * capture.low:+.1f} to {100 * capture.high:+.1f}"
    return f"traced steps {100 * capture.ratio:+.1f} % ({interval}) against neighbouring steps; {total}"


def what(capture: Capture) -> str:
    """``10 training steps of train.py:41, 1.2 M events``; other steps than the reported ones are marked."""
    if not capture.steps:
        made = f"{capture.title or 'no whole step'}"
    else:
        noun = f"{capture.work} step" if capture.work else "step"
        made = f"{plural(capture.steps, noun)} of {capture.place or capture.title or 'the job'}"
    if capture.events:
        made += f", {events(capture.events)} events"
    if not capture.joined:
        made += " (other steps than those reported here, so not joined to them)"
    return made


def line(capture: Capture) -> str:
    """What was captured and what it cost."""
    text = f"; {capture.text}" if capture.text else ""
    return printable(f"{what(capture)}; {cost(capture)}{text}")


def events(count: int) -> str:
    """1.2 M, 280 k, 730."""
    if count >= MILLION:
        return f"{count / MILLION:.1f} M"
    return f"{count / THOUSAND:.0f} k" if count >= THOUSAND else f"{count}"


def render(capture: LiveCapture, *, session: str) -> str:
    """Lines for the terminal of the user who requested it."""
    what = f"{plural(capture.steps, 'step')} of {printable(capture.title)}" if capture.steps else "no whole step"
    lines = [
        f"traced    {what} in {format_ns(capture.recorded_ns)} \u00b7 {format_bytes(capture.bytes)}",
        f"cost      {cost(capture)}",
    ]
    if capture.when:
        tries = f"; {plural(capture.tries, 'try')} before it discarded" if capture.tries else ", at the first try"
        lines.insert(
            1, f"caught    {printable(capture.when)}: {printable(capture.caught)}{tries.replace('trys', 'tries')}"
        )
    if capture.text:
        lines.append(f"note      {printable(capture.text)}")
    lines.append(f"session   {printable(session)} \u00b7 stepscope report shows it after the job has ended")
    return "\n".join(lines) + "\n"
