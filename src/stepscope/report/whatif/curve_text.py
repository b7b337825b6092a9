"""A curve of batch size or threads for people: a row for each size, and the knee."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stepscope.report.words import printable
from stepscope.tables.units import format_bytes, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.report.whatif import Measure, WhatIfCurve, WhatIfPoint

_BAR = 20
"""Length of the bar of the best rate."""
_UNITS = {"sample": "samples/s", "step": "steps/s", "run": "runs/s"}


def lines(curve: WhatIfCurve, measure: Measure, width: int) -> list[str]:
    """The rows, with an empty line before them."""
    title = "batch size, times" if curve.name == "batch" else curve.name
    head = f"{title:<20}{_UNITS[measure]:>12}  {'memory':>10}  change"
    best = max((point.rate for point in curve.points), default=0.0)
    rows = [line for point in curve.points for line in _point(point, curve, best, width)]
    last = textwrap.wrap(conclusion(curve), width)
    return ["", head, *rows, *last]


def _point(point: WhatIfPoint, curve: WhatIfCurve, best: float, width: int) -> Iterator[str]:
    name = _name(point, curve)
    if not point.rate:
        head, *rest = textwrap.wrap(f"not possible: {printable(point.note)}", width - 20)
        yield name.ljust(20) + head
        yield from (" " * 20 + line for line in rest)
        return
    bar = "\u2588" * max(1, round(_BAR * point.rate / best))
    memory = format_bytes(point.peak_bytes) if point.peak_bytes else "unknown"
    mark = "  <- knee" if point.trial == curve.knee else ""
    yield f"{name:<20}{format_rate(point.rate):>12}  {memory:>10}  {_change(point):<26}{bar}{mark}"
    for line in textwrap.wrap(printable(point.note), width - 20):
        yield " " * 20 + line


def _name(point: WhatIfPoint, curve: WhatIfCurve) -> str:
    number = point.trial.partition(":")[2]
    if curve.name == "threads":
        return number or "unchanged"
    return f"x{number}" if number else "x1 (unchanged)"


def _change(point: WhatIfPoint) -> str:
    """The change of the rate, in percent, with its interval."""
    if not point.trial:
        return ""
    value = f"{100 * (1 / point.ratio - 1):+.0f} %"
    if not point.high:
        return value
    return f"{value} ({100 * (1 / point.high - 1):+.0f} to {100 * (1 / point.low - 1):+.0f})"


def conclusion(curve: WhatIfCurve) -> str:
    """The knee and why the curve ends, in a sentence or two."""
    why = f" No larger one: {printable(curve.stopped)}." if curve.stopped else ""
    if curve.knee is None:
        return f"No size of {curve.name} could be measured.{why}"
    if not curve.knee:
        return f"No size is more than 5 % faster than the unchanged one.{why}"
    if not curve.lasting:
        fewest = curve.knee.partition(":")[2]
        return f"None is more than 5 % faster than the unchanged job; the smallest that is as fast: {fewest}.{why}"
    return f"To set the knee, the smallest within 5 % of the best: {printable(curve.lasting)}.{why}"
