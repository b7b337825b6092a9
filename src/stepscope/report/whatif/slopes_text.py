"""Slopes for people: which part of a place's time a step pays, and what it pays."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stepscope.report.words import printable
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.model.slope import WhatIfSlope

HEAD = "slopes: which part of a place's time a step pays (1: all of it, 0: others hide it, above 1: it holds others up)"
_HOW = {
    "sleep": "asleep, as it mostly waits",
    "busy": "computing without the interpreter lock",
    "busy-held": "computing with the interpreter lock held",
}
ALL, NONE, MORE = 0.85, 0.15, 1.15
"""Slopes from which a place is called exposed, up to which hidden, and from which it holds others up."""


def section(report: WhatIfReport, width: int) -> Iterator[str]:
    """Lines of the section; none if no place was delayed."""
    if report.slopes:
        yield from ("", *textwrap.wrap(HEAD, width))
    for slope in report.slopes:
        yield f"  {printable(place_text(slope))}"
        for text in (slope_text(slope), cost_text(slope), how_text(slope)):
            yield from textwrap.wrap(text, width, initial_indent="      ", subsequent_indent="      ") if text else ()


def conclusion(report: WhatIfReport) -> str:
    """Each place's slope in a sentence."""
    return " ".join(f"{place_text(slope)}: {slope_text(slope)}." for slope in report.slopes)


def place_text(slope: WhatIfSlope) -> str:
    """The place."""
    return slope.trial.partition(":")[2] or slope.trial


def slope_text(slope: WhatIfSlope) -> str:
    """The slope with its interval and what it means, or why there is none."""
    if slope.why:
        return f"no slope: {printable(slope.why)}"
    return f"slope {slope.slope:.2f} ({slope.low:.2f} to {slope.high:.2f}, 95 %): {meaning(slope)}"


def meaning(slope: WhatIfSlope) -> str:
    """What a slope says, where its interval is on one side."""
    if slope.high < NONE:
        return "hidden: others do enough meanwhile, and a faster one saves next to nothing"
    if slope.low > MORE:
        return "it holds others up: a step pays more than its time"
    if slope.low > ALL:
        return "on the critical path: the step pays all of it"
    if slope.low > NONE and slope.high < ALL:
        return "half hidden: the step pays a part of it"
    return "the step pays about this part of it"


def cost_text(slope: WhatIfSlope) -> str:
    """What a step pays; "" without a slope."""
    if slope.why:
        return ""
    cost, low, high = (max(0, one) for one in (slope.cost_ns, slope.cost_low_ns, slope.cost_high_ns))
    share = format_ratio(cost / slope.step_ns) if slope.step_ns else "?"
    return (
        f"measured cost: {format_ns(cost)} of a step of {format_ns(slope.step_ns)}, {share} "
        f"({format_ns(low)} to {format_ns(high)}): slope x {format_ns(slope.place_ns)} in the place"
    )


def how_text(slope: WhatIfSlope) -> str:
    """How it was measured; "" if it was not."""
    if not slope.pairs:
        return ""
    buffered = f"; {slope.buffered} step{'s' if slope.buffered != 1 else ''} buffered" if slope.buffered else ""
    threads = f"; called by {slope.threads} threads" if slope.threads > 1 else ""
    return (
        f"{slope.pairs} pairs of blocks; {format_ns(slope.added_ns)} added to a step, "
        f"{_HOW.get(slope.how, slope.how)}{buffered}{threads}"
    )
