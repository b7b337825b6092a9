"""Charts on the page: side by side, each with title, sentence and legend."""

from __future__ import annotations

from stepscope.reports.page.bars import swatch
from stepscope.reports.page.charts import Chart, LeftOut
from stepscope.reports.page.svg import escape


def figures(css: str, *figures: tuple[Chart | LeftOut, str]) -> str:
    """Charts side by side; below them one line for each that could not be drawn."""
    drawn = "".join(figure(chart, title) for chart, title in figures if isinstance(chart, Chart))
    absent = "".join(
        f"<li>{title} is not drawn: {escape(chart.why)}.</li>" for chart, title in figures if isinstance(chart, LeftOut)
    )
    grid = f'<div class="grid charts {css}">{drawn}</div>' if drawn else ""
    return grid + (f'<ul class="card left-out">{absent}</ul>' if absent else "")


def figure(chart: Chart, title: str) -> str:
    """One chart as a card."""
    head = f'<h3 id="{chart.name}-title">{title}</h3>'
    keys = "".join(f"<li>{swatch(key)}{escape(key.label)}</li>" for key in chart.keys)
    legend = f'<ul class="legend">{keys}</ul>' if keys else ""
    summary = f'<p class="note">{escape(chart.summary)}</p>' if chart.summary else ""
    caption = f"<figcaption>{head}{summary}{legend}</figcaption>"
    return f'<figure class="card chart">{caption}<div class="plot">{chart.markup}</div></figure>'
