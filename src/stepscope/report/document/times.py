"""The steps' times: over time, how many took how long, and the slowest ones, each with the median step."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.report import step_text, words
from stepscope.report.blocks import Drawing, Facts, Key, Stacked, Table, columns
from stepscope.report.lines import NO_BREAK, SEPARATOR
from stepscope.report.marked import Html
from stepscope.report.page import charts
from stepscope.report.page.cards import plain
from stepscope.report.page.figures import figures
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.report import Report
    from stepscope.model.report.slow_steps import SlowStep
    from stepscope.report.blocks import Text

HEAD = columns("Component | This step: | Median step: | ")


def _lines(asked: Asked) -> Said:
    """The slowest outlier among the steps, and the command that shows it compared with the median step."""
    if asked.report.slow_steps:
        path = shlex.quote(words.printable(asked.session_path)) if asked.session_path else "SESSION"
        command = f"stepscope report {path} --step slowest".replace(" ", NO_BREAK)
        first = words.printable(asked.report.slow_steps[0].headline.partition(": ")[0])
        yield Lines(label="slowest", texts=[f"{first}{SEPARATOR}{command}"], where=Where.END)


def _blocks(asked: Asked) -> Blocks:
    if asked.report.session.steps:
        yield Drawing(lambda: _charts(asked.report))
        yield Drawing(lambda: _slow_steps(asked.report.slow_steps))


def _charts(report: Report) -> Html:
    series, times = report.series, report.session.step_times
    over_time = charts.step_times(series, times, _links(report.slow_steps))
    spread = charts.histogram(series, times), "Distribution of step times"
    return figures("", (over_time, "Step time over time"), spread)


def _links(steps: Sequence[SlowStep]) -> dict[int, str]:
    """Address of each step on the page, by its number."""
    return {step.number: f"#{_key(step)}" for step in steps}


def _slow_steps(steps: Sequence[SlowStep]) -> Html:
    """All slow steps, slowest first; closed, until somebody follows its dot in the chart."""
    if not steps:
        return Html()
    rows = Html().join(_step(step) for step in steps)
    note = "Why was this one slow? Each compared with the median step; the dots of the chart lead here."
    return Html('<div class="card slow-steps"><h3>Slow steps</h3><p class="note">{}</p>{}</div>').format(note, rows)


def _key(step: SlowStep) -> str:
    return f"step-{step.number}"


def _step(step: SlowStep) -> Html:
    rows: list[list[Text]] = []
    for part in step.parts:
        name, *times = step_text.part_cells(part)
        rows.append([Key(charts.component_class(part.component), name), *times])
    said = Facts([(one.label, Stacked(one.lines)) for one in step.said])
    return Html('<details><summary>{}</summary><div id="{}">{}</div></details>').format(
        step.headline, _key(step), plain([Table(HEAD, rows), said])
    )


SECTION = Section(key="times", title="Step times", lines=_lines, blocks=_blocks)
