"""Lines, scales and ticks of charts, without styles in them (the page's policy forbids inline styles)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.report.marked import Html, el, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 680.0
"""Width of a chart in its own units: about one unit a pixel in the layouts that the page has."""
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 26.0, 40.0
"""Margins of the plot. The top one holds the unit and the values under the pointer."""
MINUTES_FROM_S, HOURS_FROM_S = 240.0, 4 * 3600.0
"""From how long a time axis counts in minutes and in hours."""

LONG = 1e6
"""Longer numbers do not fit beside an axis."""
MARKS_AT_LEAST = 3
"""Fewer marks do not make an axis."""


def text(x: float | str, y: float, words: str, *, css: str = "t", anchor: str = "start") -> Html:
    """A line of text; ``anchor`` as in SVG."""
    return el("text", {"x": x, "y": y, "class": css, "text-anchor": anchor}, words)


class Scale(Struct, frozen=True, kw_only=True):
    """Maps values ``low`` to ``high`` onto coordinates ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a value; values outside stay at the border."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = (at - low) / (high - low) if high > low else 0.0
        return self.start + share * (self.end - self.start)


def nice_step(span: float, count: int) -> float:
    """The smallest of 1, 2, 2.5, 5 x 10^n that parts ``span`` into at most ``count`` pieces."""
    raw = (span if span > 0 else 1e-9) / count
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * (1 - 1e-9))


LEAST_TOP = 1e-9
"""A series that never rises above this is drawn as a flat line at zero."""


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values from ``low`` to ``high``."""
    step = nice_step(high - low, count)
    first = math.ceil(low / step - 1e-9)
    digits = 3 - math.floor(math.log10(step))
    return [round(i * step, digits) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, count: int = 7) -> list[float]:
    """Round values for a logarithmic axis, as many as fit; steps of a linear scale where the range is small."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples in ((1, 1.5, 2, 3, 4, 6, 8), (1, 2, 5), (1, 3), (1,)):
        marks = [m * 10.0**p for p in powers for m in multiples if low <= m * 10.0**p <= high]
        if len(marks) <= count:
            break
    return marks if len(marks) >= MARKS_AT_LEAST else ticks(low, high, 4)


def tick_text(value: float) -> str:
    """A value on an axis: no more digits than it has."""
    return f"{value:,.10g}" if abs(value) < LONG else f"{value:.3g}"


class Plot(Struct, frozen=True, kw_only=True):
    """The area of a chart between its axes."""

    x: Scale
    y: Scale
    height: float
    x_marks: tuple[tuple[float, str], ...]
    y_marks: tuple[tuple[float, str], ...]
    x_title: str
    y_title: str

    def axes(self) -> Html:
        """Grid lines, ticks and titles."""
        parts = [text(0, 12, self.y_title, css="t unit")]
        for value, label in self.y_marks:
            y = self.y(value)
            parts.append(el("line", {"x1": self.x.start, "x2": self.x.end, "y1": y, "y2": y, "class": "grid"}))
            parts.append(text(self.x.start - 7, y + 4, label, anchor="end"))
        base = self.y.start
        parts.append(el("line", {"x1": self.x.start, "x2": self.x.end, "y1": base, "y2": base, "class": "axis"}))
        for value, label in self.x_marks:
            x = self.x(value)
            parts.append(el("line", {"x1": x, "x2": x, "y1": base, "y2": base + 4, "class": "axis"}))
            parts.append(text(x, base + 17, label, anchor="middle"))
        parts.append(text(self.x.end, base + 34, self.x_title, css="t unit", anchor="end"))
        return Html().join(parts)

    def line(self, xs: Sequence[float], ys: Sequence[float], css: str) -> Html:
        """A line through points."""
        return el("path", {"d": "M" + self._points(zip(xs, ys, strict=True)), "class": css})

    def area(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], css: str) -> Html:
        """The area between two lines."""
        back = list(zip(xs, lows, strict=True))[::-1]
        d = f"M{self._points(zip(xs, highs, strict=True))}L{self._points(back)}Z"
        return el("path", {"d": d, "class": css})

    def _points(self, points: Iterable[tuple[float, float]]) -> str:
        return "L".join(f"{number(self.x(x))} {number(self.y(y))}" for x, y in points)


def time_axis(low: float, high: float) -> tuple[tuple[tuple[float, str], ...], str]:
    """Marks and title of an axis of seconds since session start, in seconds, minutes or hours."""
    divisor, unit = 1.0, "seconds"
    if high > HOURS_FROM_S:
        divisor, unit = 3600.0, "hours"
    elif high > MINUTES_FROM_S:
        divisor, unit = 60.0, "minutes"
    marks = tuple((m * divisor, tick_text(m)) for m in ticks(low / divisor, high / divisor, 8))
    return marks, f"{unit} since start"


def time_plot(times: Sequence[float], top: float, unit: str, *, height: float, log_from: float | None = None) -> Plot:
    """A plot over time, from zero to ``top``, or logarithmic from ``log_from``."""
    marks, title = time_axis(times[0], times[-1])
    x = Scale(low=times[0], high=times[-1], start=LEFT, end=WIDTH - RIGHT)
    base, head = height - BOTTOM, TOP
    if log_from is not None:
        y = Scale(low=log_from, high=top, start=base, end=head, log=True)
        y_ticks = log_ticks(log_from, top)
    else:
        top = top if top > LEAST_TOP else 1.0
        y_ticks = ticks(0, top, max(3, int((base - head) / 36)))
        step = y_ticks[1] - y_ticks[0]
        y_ticks = [*y_ticks, y_ticks[-1] + step] if y_ticks[-1] < top - 0.02 * step else y_ticks
        y = Scale(low=0, high=max(top, y_ticks[-1]), start=base, end=head)
    return Plot(
        x=x,
        y=y,
        height=height,
        x_marks=marks,
        y_marks=tuple((v, tick_text(v)) for v in y_ticks),
        x_title=title,
        y_title=unit,
    )
