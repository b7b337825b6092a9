"""Values that the program logs, as charts with an axis from the smallest to the largest value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.report.blocks import Drawing
from stepscope.report.page import charts, svg
from stepscope.report.page.charts import Chart, LeftOut
from stepscope.report.page.figures import figures
from stepscope.report.section import Asked, Blocks, Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHOWN = 6
"""Charts on the page; all metrics are in report.json."""
VALUE, TIME = "metric:", "metric_t:"


def metrics(series: Mapping[str, Sequence[float]]) -> list[tuple[Chart | LeftOut, str]]:
    """(chart, title) of each metric, at most six."""
    names = [key.removeprefix(VALUE) for key in series if key.startswith(VALUE)]
    return [(_metric(f"metric-{i}", name, series), name) for i, name in enumerate(names[:SHOWN])]


def _metric(chart: str, name: str, series: Mapping[str, Sequence[float]]) -> Chart | LeftOut:
    why = charts.missing(series, TIME + name, VALUE + name)
    if why:
        return LeftOut(name=chart, why=why)
    times, values = series[TIME + name], series[VALUE + name]
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    plot = svg.time_plot(times, 1.0, "", height=charts.LOW)
    y = svg.Scale(low=low - room, high=high + room, start=plot.y.start, end=plot.y.end)
    marks = tuple((v, svg.tick_text(v)) for v in svg.ticks(low, high, 4))
    plot = replace(plot, y=y, y_marks=marks or ((low, svg.tick_text(low)),))

    def read(index: int) -> str:
        return f"{values[index]:.4g}"

    summary = f"From {values[0]:.4g} to {values[-1]:.4g}, minimum {low:.4g}, maximum {high:.4g}."
    shown = charts.readouts(plot, times, read)
    markup = charts.drawing(chart, charts.LOW, summary, plot.axes(), plot.line(times, values, "line s-step"), shown)
    return Chart(name=chart, markup=markup, summary=summary)


def _blocks(asked: Asked) -> Blocks:
    yield Drawing(lambda: figures("", *metrics(asked.report.series)))


SECTION = Section(key="metrics", title="Metrics logged by the program", blocks=_blocks)
