"""Bars of the page, as inline SVG: a step and its parts, a cost with its interval, a share; and swatches of legends.

Widths are percentages: a bar fits any page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.marked import Attribute, Html, el
from stepscope.report.page import svg
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from stepscope.report.blocks import Bar
    from stepscope.tables.findings import Cost

LETTER, NARROW = 8.0, 680.0
"""Width of a letter, and of the bar on a narrow page: what does not fit there is not written into the bar."""
HEIGHT = 52


def step(bar: Bar) -> Html:
    """A step, or a job, as one bar of its parts."""
    whole = max(1.0, sum(row.ratio for row in bar.parts))
    at, drawn = 0.0, []
    for row in bar.parts:
        left, width = 100 * at / whole, 100 * row.ratio / whole
        about = el("title", None, f"{row.label}: {words.percent(row.ratio)} %, {format_ns(row.ns)}{bar.per}")
        size: dict[str, Attribute] = {"x": f"{left:.3f}%", "width": f"{width:.3f}%", "height": HEIGHT}
        inside = [el("rect", {"width": "100%", "height": HEIGHT, "class": f"{row.css} part"}, about)]
        short = f"{words.percent(row.ratio)} %"
        share = row.ratio / whole
        amount = next((a for a in (f"{short} \u00b7 {format_ns(row.ns)}", short) if _fits(a, share)), "")
        if amount and _fits(row.label, share):
            inside.append(svg.text("50%", 23, row.label, css=f"on-{row.css} strong", anchor="middle"))
            inside.append(svg.text("50%", 40, amount, css=f"on-{row.css}", anchor="middle"))
        drawn.append(el("svg", size, *inside))
        at += row.ratio
    said = ", ".join(f"{row.label} {words.percent(row.ratio)} %" for row in bar.parts)
    head: dict[str, Attribute] = {
        "class": "bar",
        "width": "100%",
        "height": HEIGHT,
        "role": "img",
        "aria-label": f"{bar.title}: {said}",
    }
    return el("svg", head, *drawn)


def _fits(label: str, share: float) -> bool:
    return len(label) * LETTER < share * NARROW


def cost_bar(cost: Cost, severity: str) -> Html:
    """The predicted gain as a share of the whole, with its interval."""

    def place(ratio: float) -> str:
        return f"{100 * min(max(ratio, 0.0), 1.0):.2f}%"

    low, high = place(cost.low), place(cost.high)
    whiskers = [el("line", {"x1": at, "x2": at, "y1": 5, "y2": 17, "class": "whisker"}) for at in (low, high)]
    return el(
        "svg",
        {"class": "bar cost", "width": "100%", "height": 22, "aria-hidden": "true"},
        el("rect", {"width": "100%", "height": 10, "y": 6, "rx": 2, "class": "track"}),
        el("rect", {"width": place(cost.ratio), "height": 10, "y": 6, "rx": 2, "class": f"sev-{severity}"}),
        el("line", {"x1": low, "x2": high, "y1": 11, "y2": 11, "class": "whisker"}),
        *whiskers,
    )


def share_bar(ratio: float) -> Html:
    """A share as a small bar for tables."""
    return el(
        "svg",
        {"class": "bar share", "width": "100%", "height": 10, "aria-hidden": "true"},
        el("rect", {"width": "100%", "height": 10, "rx": 2, "class": "track"}),
        el("rect", {"width": f"{100 * min(max(ratio, 0.0), 1.0):.2f}%", "height": 10, "rx": 2, "class": "fill"}),
    )


def swatch(css: str, kind: str = "box") -> Html:
    """What stands before an entry of a legend."""
    if kind == "line":
        shape = el("path", {"d": "M1 7H19", "class": css})
    elif kind == "dot":
        shape = el("circle", {"cx": 10, "cy": 7, "r": 3.5, "class": css})
    else:
        shape = el("rect", {"x": 3, "y": 1, "width": 14, "height": 12, "rx": 2, "class": css})
    return el("svg", {"width": 20, "height": 14, "aria-hidden": "true", "class": "swatch"}, shape)
