"""The charts of the page, as inline SVG made here: no script draws them, and they read without one.

A chart is a pure function of the report's series. Where a series is missing, the function returns a
:class:`LeftOut` with the reason instead. The values under the pointer are shown by style sheet alone.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.report import words
from stepscope.report.marked import Attribute, Html, el, number
from stepscope.report.page import svg
from stepscope.report.page.svg import LEFT, RIGHT, TOP, WIDTH, Plot, Scale
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stepscope.model.report.report import Component
    from stepscope.model.report.step_summary import StepTimes

Series = "Mapping[str, Sequence[float]]"

HEIGHT, STACK = 280.0, 250.0
TALL, LOW = 440.0, 165.0
"""Heights of a chart that stands beside two low ones."""
BANDS = 80
"""How many slices of a chart answer the pointer: each costs about 250 bytes of the page."""
READ_PARTS, READ_LETTERS = 4, 88
"""How many parts of a stack the readout names, and how long it may be beside the unit of the axis."""
LOG_FROM = 12.0
"""Slowest over median step from which step times get a logarithmic axis; it reaches as far below the median."""
LOG_COUNT_FROM = 60
"""Most over fewest steps in a bin from which the histogram counts on a logarithmic axis."""
LEAST = {"cores": 0.2, "MB": 10.0, "MB/s": 1.0, "%": 10.0}
"""Least top of an axis: what is next to nothing shall look like it."""
LIMIT_FITS = 3.0
"""A limit that is more times the largest value than this is told, not drawn: it would flatten the lines."""
FEWEST = 2
"""Fewest points of a fifth of a curve of which a mean is said."""
PATTERN_ID = "hatch"
NO_VALUES = "this session has no values for it"
BAD_VALUES = "its values in this session do not fit together"
"""Why charts are not drawn."""
NS_PER_MS = 1e6


class Key(Struct, frozen=True, kw_only=True):
    """An entry of a legend. ``css`` is the class of what is drawn, ``kind`` its shape."""

    css: str
    kind: str
    label: str


class Chart(Struct, frozen=True, kw_only=True):
    """A drawn chart: markup, legend, and what it says in a sentence."""

    name: str
    markup: Html
    keys: tuple[Key, ...] = ()
    summary: str = ""


class LeftOut(Struct, frozen=True, kw_only=True):
    """Why a chart was not drawn."""

    name: str
    why: str


def component_class(component: str) -> str:
    """The class that colours a component: the same in all charts."""
    return f"c-{component}" if component in words.COMPONENT_WORDS else "c-else"


def missing(series: Mapping[str, Sequence[float]], *keys: str) -> str:
    """Why a chart of these series cannot be drawn; empty when it can."""
    if not all(series.get(k) for k in keys):
        return NO_VALUES
    values = [series[k] for k in keys]
    if len({len(v) for v in values}) > 1:
        return BAD_VALUES
    if len(values[0]) == 1:
        return "there is only one data point"
    if not all(math.isfinite(x) for v in values for x in v):
        return BAD_VALUES
    return ""


def drawing(name: str, height: float, desc: str, *parts: Html) -> Html:
    """A chart's markup with its description."""
    attributes: dict[str, Attribute] = {
        "viewBox": f"0 0 {number(WIDTH)} {number(height)}",
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-desc",
    }
    return el("svg", attributes, el("desc", {"id": f"{name}-desc"}, desc), *parts)


def readouts(plot: Plot, times: Sequence[float], read: Callable[[int], str]) -> Html:
    """Slices of the plot that show their values while the pointer is over them."""
    count = min(BANDS, len(times))
    edges = [plot.x.start + (plot.x.end - plot.x.start) * i / count for i in range(count + 1)]
    places = [plot.x(t) for t in times]
    groups = []
    for left, right in pairwise(edges):
        middle = (left + right) / 2
        index = min(bisect_right(places, middle), len(times) - 1)
        if index and middle - places[index - 1] < places[index] - middle:
            index -= 1
        size: dict[str, Attribute] = {"x": left, "y": TOP, "width": right - left, "height": plot.y.start - TOP}
        line: dict[str, Attribute] = {"x1": places[index], "x2": places[index], "y1": TOP, "y2": plot.y.start}
        label = f"{_seconds(times[index])}: {read(index)}"
        label = label if len(label) <= READ_LETTERS else f"{label[: READ_LETTERS - 1]}\u2026"
        shown = el("g", None, el("line", line), svg.text(WIDTH - RIGHT, 12, label, css="t", anchor="end"))
        groups.append(el("g", None, el("rect", size), shown))
    return el("g", {"class": "read", "aria-hidden": "true"}, *groups)


def _seconds(at: float) -> str:
    if at < svg.MINUTES_FROM_S:
        return f"{at:.1f} s"
    minutes, seconds = divmod(round(at), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _ms(value: float) -> str:
    return format_ns(value * NS_PER_MS)


def hatch() -> Html:
    """The pattern of time that is not measured; the page holds it once."""
    stripe = el("path", {"d": "M-1 1L1-1M0 6L6 0M5 7L7 5"})
    attributes: dict[str, Attribute] = {"id": PATTERN_ID, "width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
    pattern = el("pattern", attributes, el("rect", {"width": 6, "height": 6}), stripe)
    return el("svg", {"width": 0, "height": 0, "aria-hidden": "true", "class": "defs"}, el("defs", None, pattern))


def merged(components: Iterable[Component]) -> list[tuple[str, float, float]]:
    """(component, share, ns per step), parts of the same name added, largest first, what is not measured last."""
    shares: dict[str, tuple[float, float]] = {}
    for part in components:
        ratio, ns = shares.get(part.component, (0.0, 0.0))
        shares[part.component] = (ratio + part.ratio, ns + part.ns_per_step)
    rows = [(name, ratio, ns) for name, (ratio, ns) in shares.items() if ratio > 0]
    return sorted(rows, key=lambda row: (row[0] == "unmeasured", -row[1]))


def anatomy(series: Mapping[str, Sequence[float]], components: Iterable[Component]) -> Chart | LeftOut:
    """Components of the step over time, stacked."""
    name = "anatomy"
    known = [part for part, _, _ in merged(components)]
    found = [k.removeprefix("anat:") for k in series if k.startswith("anat:")]
    parts = [p for p in known if p in found] + sorted(p for p in found if p not in known)
    why = missing(series, "anat_t", *(f"anat:{p}" for p in parts))
    if why or not parts:
        return LeftOut(name=name, why=why or NO_VALUES)
    parts = [p for p in parts if any(series[f"anat:{p}"])] or parts
    times = series["anat_t"]
    columns = [list(accumulate(values)) for values in zip(*(series[f"anat:{p}"] for p in parts), strict=True)]
    plot = svg.time_plot(times, max(c[-1] for c in columns), "ms per step", height=STACK)
    layers, below = [], [0.0] * len(times)
    for i, part in enumerate(parts):
        above = [c[i] for c in columns]
        layers.append(plot.area(times, below, above, f"{component_class(part)} part"))
        below = above

    def read(index: int) -> str:
        shown = sorted(parts, key=lambda p: -series[f"anat:{p}"][index])[:READ_PARTS]
        return " \u00b7 ".join(f"{words.component_word(p)} {_ms(series[f'anat:{p}'][index])}" for p in shown)

    keys = tuple(Key(css=component_class(p), kind="box", label=words.component_word(p)) for p in parts)
    summary = _over_time([column[-1] for column in columns])
    body = plot.axes() + Html().join(layers) + readouts(plot, times, read)
    return Chart(name=name, markup=drawing(name, STACK, summary, body), keys=keys, summary=summary)


def _over_time(per_step: Sequence[float]) -> str:
    """Bounds of a curve of ms per step; where it has enough points, its means at the start and at the end."""
    bounds = f"{_ms(min(per_step))} to {_ms(max(per_step))} per step"
    part = len(per_step) // 5
    if part < FEWEST:
        return f"{bounds}."
    first, last = (_ms(statistics.fmean(some)) for some in (per_step[:part], per_step[-part:]))
    return f"{bounds}; on average {first} in the first fifth of the steps, {last} in the last."


def step_times(
    series: Mapping[str, Sequence[float]], steady: StepTimes | None, links: Mapping[int, str] | None = None
) -> Chart | LeftOut:
    """Median and 95th percentile of the step time over time, and the slowest steps; without the warm-up.

    ``links``: by number of a step, the address of what is said of it.
    """
    name = "step-times"
    why = missing(series, "step_t", "step_ms_p50", "step_ms_p95")
    if why:
        return LeftOut(name=name, why=why)
    times, p50, p95 = series["step_t"], series["step_ms_p50"], series["step_ms_p95"]
    warm_s = steady.warmup_ns / 1e9 if steady is not None else 0.0
    skip = sum(t < times[0] + warm_s for t in times)
    if len(times) - skip > 1:
        times, p50, p95 = times[skip:], p50[skip:], p95[skip:]
    dots = _outliers(series, times[0], times[-1])
    single = list(p50) == list(p95)
    top, middle = max(*p95, *(ms for _, ms, _ in dots)), statistics.median(p50)
    log = middle > 0 and top / middle > LOG_FROM
    low = max(0.85 * min(p50), middle / LOG_FROM) if log else None
    plot = svg.time_plot(times, top * (1.1 if log else 1.0), "ms", height=HEIGHT, log_from=low)
    marks = [_outlier(plot.x(t), plot.y(ms), number, ms, links or {}) for t, ms, number in dots]

    def read(index: int) -> str:
        return _ms(p50[index]) if single else f"median {_ms(p50[index])} \u00b7 p95 {_ms(p95[index])}"

    summary = f"The slowest step took {_ms(top)}"
    if steady is not None:
        median, slow = words.time_pair(steady.p50_ns, steady.p95_ns)
        summary = f"Median {median} (p95 {slow}), maximum {_ms(top)}"
    summary += f"; the first {format_ns(warm_s * 1e9)} (warm-up) are not shown" if skip else ""
    summary += "; logarithmic axis." if log else "."
    lines = plot.line(times, p95, "line thin s-step") + plot.line(times, p50, "line s-step")
    body = plot.axes() + plot.area(times, p50, p95, "band s-step") + lines
    keys = (
        Key(css="line s-step", kind="line", label="each step" if single else "median"),
        *(() if single else (Key(css="band s-step", kind="box", label="up to the 95th percentile"),)),
        *((Key(css="outlier", kind="dot", label="slowest steps"),) if dots else ()),
    )
    markup = drawing(name, HEIGHT, summary, body + readouts(plot, times, read) + Html().join(marks))
    return Chart(name=name, markup=markup, keys=keys, summary=summary)


def _outliers(series: Mapping[str, Sequence[float]], first: float, last: float) -> list[tuple[float, float, int]]:
    """(time, milliseconds, number) of the slowest steps within a time; number -1 in reports of older versions."""
    times = series.get("outlier_t", ())
    if not times or len(series.get("outlier_ms", ())) != len(times):
        return []
    numbers = series.get("outlier_step", ())
    known = numbers if len(numbers) == len(times) else [-1.0] * len(times)
    rows = zip(times, series["outlier_ms"], known, strict=True)
    return [(t, ms, int(number)) for t, ms, number in rows if first <= t <= last and math.isfinite(ms)]


def _outlier(x: float, y: float, number: int, ms: float, links: Mapping[int, str]) -> Html:
    """The dot of a slow step; a link where the page says more of it."""
    title = el("title", None, f"step {number}: {_ms(ms)}") if number >= 0 else Html()
    dot = el("circle", {"cx": x, "cy": y, "r": 3, "class": "outlier"}, title)
    if number not in links:
        return dot
    room = el("circle", {"cx": x, "cy": y, "r": 8, "class": "room"})
    attributes: dict[str, Attribute] = {"href": links[number], "aria-label": f"step {number}, {_ms(ms)}"}
    return el("a", attributes, dot, room)


def histogram(series: Mapping[str, Sequence[float]], times: StepTimes | None) -> Chart | LeftOut:
    """How many steps took how long, on a logarithmic axis of time."""
    name = "histogram"
    edges, counts = series.get("hist_ms_edges", ()), series.get("hist_count", ())
    if not counts or len(edges) != len(counts) + 1 or not any(counts) or edges[0] <= 0:
        return LeftOut(name=name, why=NO_VALUES if not counts or any(counts) else "no steady steps were seen")
    used = [i for i, c in enumerate(counts) if c > 0]
    first, last = max(0, used[0] - 1), min(len(counts), used[-1] + 2)
    edges, counts = edges[first : last + 1], counts[first:last]
    x = Scale(low=edges[0], high=edges[-1], start=LEFT, end=WIDTH - RIGHT, log=True)
    most, base = max(counts), HEIGHT - svg.BOTTOM
    log = most / min(c for c in counts if c > 0) > LOG_COUNT_FROM
    y_marks = [10.0**p for p in range(math.ceil(math.log10(most)) + 1)] if log else svg.ticks(0, most, 5)
    if not log and y_marks[-1] < most:
        y_marks.append(y_marks[-1] + y_marks[1] - y_marks[0])
    y = Scale(low=0.5 if log else 0, high=max(most, y_marks[-1]), start=base, end=TOP + 14, log=log)
    plot = Plot(
        x=x,
        y=y,
        height=HEIGHT,
        x_marks=tuple((v, svg.tick_text(v)) for v in svg.log_ticks(edges[0], edges[-1], 9)),
        y_marks=tuple((v, svg.tick_text(v)) for v in y_marks if v == int(v)),
        x_title="ms per step (logarithmic)",
        y_title="steps (logarithmic)" if log else "steps",
    )
    bars = []
    for left, right, count in zip(edges, edges[1:], counts, strict=False):
        if count > 0:
            top, start = y(count), x(left)
            about = el("title", None, f"{_ms(left)} to {_ms(right)}: {words.plural(int(count), 'step')}")
            size: dict[str, Attribute] = {"x": start + 0.5, "y": top, "width": max(1.0, x(right) - start - 1)}
            bars.append(el("rect", size | {"height": base - top, "class": "column"}, about))
    lines = Html() if times is None else _quantiles(x, base, times)
    total = int(sum(counts))
    summary = f"{words.plural(total, 'steady step')} from {_ms(edges[1] if first else edges[0])} to {_ms(edges[-2])}."
    return Chart(name=name, markup=drawing(name, HEIGHT, summary, plot.axes(), *bars, lines), summary=summary)


def _quantiles(x: Scale, base: float, times: StepTimes) -> Html:
    """Lines at the median and the 95th percentile; their labels stand apart at whatever distance."""
    parts = []
    for label, ns, anchor, shift in (("median", times.p50_ns, "end", -4), ("p95", times.p95_ns, "start", 4)):
        ms = ns / NS_PER_MS
        if x.low <= ms <= x.high:
            at = x(ms)
            parts.append(el("line", {"x1": at, "x2": at, "y1": TOP - 6, "y2": base, "class": "mark"}))
            parts.append(svg.text(at + shift, TOP + 2, f"{label} {_ms(ms)}", css="t strong", anchor=anchor))
    return Html().join(parts)


class Resource(Struct, frozen=True, kw_only=True):
    """One line of a chart of resources."""

    key: str
    css: str
    label: str


def resource(
    name: str,
    unit: str,
    series: Mapping[str, Sequence[float]],
    lines: Sequence[Resource],
    *,
    height: float = HEIGHT,
    limit: Resource | None = None,
) -> Chart | LeftOut:
    """Lines over time; those whose series is missing are left out, the first is filled; a limit is a line too."""
    there = [r for r in lines if not missing(series, "res_t", r.key)]
    if not there:
        return LeftOut(name=name, why=missing(series, "res_t", lines[0].key))
    times = series["res_t"]
    top = max(LEAST[unit], *(max(series[r.key]) for r in there))
    bound = None if limit is None or missing(series, "res_t", limit.key) else limit
    most = max(series[bound.key]) if bound is not None else 0.0
    drawn = most <= LIMIT_FITS * top
    plot = svg.time_plot(times, max(top, most if drawn else 0.0), unit, height=height)
    parts, flat = [plot.axes()], [0.0] * len(times)
    parts += [plot.area(times, flat, series[r.key], f"band {r.css}") for r in there if r is lines[0]]
    parts += [plot.line(times, series[r.key], f"line {r.css}") for r in reversed(there)]

    def read(index: int) -> str:
        return " \u00b7 ".join(f"{r.label} {words.value_text(series[r.key][index], unit)}" for r in there)

    said = [f"{r.label} {words.value_text(sum(series[r.key]) / len(times), '')}" for r in there]
    summary = f"On average: {', '.join(said)} {unit}."
    if len(lines) == 1:
        summary = f"{words.value_text(max(series[lines[0].key]), unit)} maximum."
    if bound is not None:
        summary += f" {bound.label.capitalize()}: {words.value_text(most, unit)}{'' if drawn else ', above the chart'}."
        parts += [plot.line(times, series[bound.key], f"line {bound.css}")] if drawn else []
    if absent := [r.label for r in lines if r not in there]:
        summary += f" Not measured: {', '.join(absent)}."
    markup = drawing(name, height, summary, *parts, readouts(plot, times, read))
    shown = [*there, bound] if bound is not None and drawn else list(there)
    keys = tuple(Key(css=f"line {r.css}", kind="line", label=r.label) for r in shown) if len(shown) > 1 else ()
    return Chart(name=name, markup=markup, keys=keys, summary=summary)
