"""The slow steps on the page, each with the median step: closed, until somebody follows its dot in the chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import step_text
from stepscope.report.marked import Html
from stepscope.report.page import bars, charts
from stepscope.report.page.tables import facts, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.slow_steps import SlowStep

HEAD = ("Component", "This step", "Median step", "")


def links(steps: Sequence[SlowStep]) -> dict[int, str]:
    """Address of each step on the page, by its number."""
    return {step.number: f"#{_key(step)}" for step in steps}


def page(steps: Sequence[SlowStep]) -> Html:
    """All slow steps, slowest first; nothing without any."""
    if not steps:
        return Html()
    rows = Html().join(_step(step) for step in steps)
    note = "Why was this one slow? Each compared with the median step; the dots of the chart lead here."
    return Html('<div class="card slow-steps"><h3>Slow steps</h3><p class="note">{}</p>{}</div>').format(note, rows)


def _key(step: SlowStep) -> str:
    return f"step-{step.number}"


def _step(step: SlowStep) -> Html:
    rows = []
    for part in step.parts:
        name, mine, usual, factor = step_text.part_cells(part)
        swatch = bars.swatch(charts.Key(css=charts.component_class(part.component), kind="box", label=""))
        rows.append(
            Html('<th scope="row" class="key">{}{}</th><td class="n">{}</td><td class="n">{}</td><td>{}</td>').format(
                swatch, name, mine, usual, factor
            )
        )
    said = facts((one.label, Html("<br>").join(one.lines)) for one in step.said)
    parts = table(HEAD, rows, numeric=(1, 2))
    summary = Html("<summary>{}</summary>").format(step.headline)
    return Html('<details>{}<div id="{}">{}{}</div></details>').format(summary, _key(step), parts, said)
