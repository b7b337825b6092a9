"""The slow steps on the page, each with the median step: closed, until somebody follows its dot in the chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports import step_text
from stepscope.reports.page import bars, charts
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import facts, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.slow_steps import SlowStep

HEAD = ("Component", "This step", "Median step", "")


def links(steps: Sequence[SlowStep]) -> dict[int, str]:
    """Address of each step on the page, by its number."""
    return {step.number: f"#{_key(step)}" for step in steps}


def page(steps: Sequence[SlowStep]) -> str:
    """All slow steps, slowest first; nothing without any."""
    if not steps:
        return ""
    rows = "".join(_step(step) for step in steps)
    note = "Why was this one slow? Each compared with the median step; the dots of the chart lead here."
    return f'<div class="card slow-steps"><h3>Slow steps</h3><p class="note">{note}</p>{rows}</div>'


def _key(step: SlowStep) -> str:
    return f"step-{step.number}"


def _step(step: SlowStep) -> str:
    rows = []
    for part in step.parts:
        name, mine, usual, factor = map(escape, step_text.part_cells(part))
        swatch = bars.swatch(charts.Key(css=charts.component_class(part.component), kind="box", label=""))
        rows.append(
            f'<th scope="row" class="key">{swatch}{name}</th><td class="n">{mine}</td><td class="n">{usual}</td>'
            f"<td>{factor}</td>"
        )
    said = facts((escape(one.label), "<br>".join(map(escape, one.lines))) for one in step.said)
    parts = table(HEAD, rows, numeric=(1, 2))
    summary = f"<summary>{escape(step.headline)}</summary>"
    return f'<details>{summary}<div id="{_key(step)}">{parts}{said}</div></details>'
