"""Charts on the page: side by side, each with title, sentence and legend."""

from __future__ import annotations

from stepscope.report.marked import Html
from stepscope.report.page.bars import swatch
from stepscope.report.page.charts import Chart, LeftOut


def figures(css: str, *figures: tuple[Chart | LeftOut, str]) -> Html:
    """Charts side by side; below them one line for each that could not be drawn."""
    drawn = Html().join(figure(chart, title) for chart, title in figures if isinstance(chart, Chart))
    absent = Html().join(
        Html("<li>{} is not drawn: {}.</li>").format(title, chart.why)
        for chart, title in figures
        if isinstance(chart, LeftOut)
    )
    grid = Html('<div class="grid charts {}">{}</div>').format(css, drawn) if drawn else Html()
    return grid + (Html('<ul class="card left-out">{}</ul>').format(absent) if absent else Html())


def figure(chart: Chart, title: str) -> Html:
    """One chart as a card."""
    head = Html('<h3 id="{}-title">{}</h3>').format(chart.name, title)
    keys = Html().join(Html("<li>{}{}</li>").format(swatch(key.css, key.kind), key.label) for key in chart.keys)
    legend = Html('<ul class="legend">{}</ul>').format(keys) if keys else Html()
    summary = Html('<p class="note">{}</p>').format(chart.summary) if chart.summary else Html()
    caption = Html("<figcaption>{}{}{}</figcaption>").format(head, summary, legend)
    return Html('<figure class="card chart">{}<div class="plot">{}</div></figure>').format(caption, chart.markup)
