"""The mean step: its components, over time too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import maker_rows, verdict, words
from stepscope.report.blocks import At, Bar, Code, Drawing, Grid, Key, Paragraph, Part, Table, columns
from stepscope.report.page import charts
from stepscope.report.page.figures import figure, figures
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.report.report import Report
    from stepscope.report.marked import Html

SMALL_SHARE = 0.005
"""Components below half a percent are omitted from the line."""
HEAD = columns("Component | Share: | Per step: | Pipeline stage | Largest part")


def _lines(asked: Asked) -> Said:
    report = asked.report
    if report.session.steps:
        yield Lines(label="makers", texts=maker_rows.lines(report.session), where=Where.HEAD)
        note = filter(None, [verdict.steps_note(report)])
        yield Lines(label="the step", texts=[(*_items(report), *note), *_bases(report)], where=Where.HEAD)


def _items(report: Report) -> list[str]:
    shares: dict[str, float] = {}
    for part in report.anatomy:
        shares[part.component] = shares.get(part.component, 0.0) + part.ratio
    shown = sorted((c for c in shares if shares[c] >= SMALL_SHARE), key=lambda c: -shares[c])
    items = [f"{words.component_of(report, c)} {100 * shares[c]:.0f} %" for c in shown]
    return items or ["no breakdown available"]


def _blocks(asked: Asked) -> Blocks:
    report = asked.report
    merged = charts.merged(report.anatomy)
    if not merged:
        return
    for text in [*maker_rows.lines(report.session), *_total(report), *_bases(report)]:
        yield Paragraph(text, "note")
    bar = [Part(charts.component_class(name), words.component_word(name), ratio, ns) for name, ratio, ns in merged]
    yield Bar("The mean step", bar)
    drawing = Drawing(lambda: _over_time(report))
    yield from [Grid([[_table(report)], [drawing]])] if report.series.get("anat_t") else [_table(report), drawing]


def _bases(report: Report) -> list[str]:
    """How parts were measured of which records alone do not say it."""
    return [
        f"{words.component_of(report, part.component)}: {words.printable(part.basis)}"
        for part in report.anatomy
        if part.basis and part.ratio >= SMALL_SHARE
    ]


def _total(report: Report) -> Iterator[str]:
    times = report.session.step_times
    if times is not None:
        what = f"Steps of {times.source}: " if times.source else ""
        timed = f"the shares are those of {words.plural(times.count, 'timed step')}"
        yield f"{what}{format_ns(times.mean_ns)} on average; {timed}."


def _table(report: Report) -> Table:
    rows = [
        (
            Key(charts.component_class(part.component), words.component_of(report, part.component)),
            f"{words.percent(part.ratio)} %",
            format_ns(part.ns_per_step),
            words.stage_word(part.pipeline_stage) if part.pipeline_stage != "none" else "",
            (Code(part.name), At(part.where)),
        )
        for part in report.anatomy
    ]
    return Table(HEAD, rows)


def _over_time(report: Report) -> Html:
    chart, title = charts.anatomy(report.series, report.anatomy), "The step over time"
    return figures("", (chart, title)) if isinstance(chart, charts.LeftOut) else figure(chart, title)


SECTION = Section(key="step", title="The mean step", lines=_lines, blocks=_blocks)
