"""The report as one page: self-contained, offline, readable without any script (``report.page.document``)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.report import capture_text, checked_words, maker_rows, member_rows, task_rows, verdict, words
from stepscope.report.marked import Html
from stepscope.report.memory import room_words
from stepscope.report.page import (
    bars,
    call_rows,
    charts,
    input_rows,
    ledger_page,
    limit_rows,
    link_rows,
    memory_page,
    metric_charts,
    op_rows,
    page_header,
    resource_charts,
    slow_steps,
    traced_page,
)
from stepscope.report.page.charts import LeftOut
from stepscope.report.page.document import document, sections
from stepscope.report.page.figures import figure, figures
from stepscope.report.page.finding_card import findings
from stepscope.report.page.tables import cells, code, facts, notes, place, table
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.report.report import Report

MIDDLE_DOT = " \u00b7 "


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> Html:
    """The page. ``sources``: path to text of the user's files, for excerpts of the code."""
    return document(f"stepscope: {words.subject(report)}", _body(report, sources or {}))


def _body(report: Report, sources: Mapping[str, str]) -> Html:
    shown = [
        ("step", "The mean step", _step(report)),
        ("findings", "Findings", findings(report, sources)),
        ("members", "Members", _members(report)),
        ("job", "The job", ledger_page.page(report)),
        ("times", "Step times", _times(report)),
        ("resources", "Resources", Html() if words.is_imported(report) else resource_charts.page(report.series)),
        ("memory", "Memory", memory_page.page(report.memory)),
        ("metrics", "Metrics logged by the program", figures("", *metric_charts.metrics(report.series))),
        ("stages", "Pipeline stages", _stages(report)),
        ("input", "Input", input_rows.page(report)),
        ("tasks", "Tasks", _tasks(report)),
        ("traced", "Traced steps", traced_page.page(report)),
        ("ops", "Ops", op_rows.page(report.ops)),
        ("calls", "System calls", call_rows.page(report.system_calls)),
        ("limits", "Limits", limit_rows.page(report.limits)),
        ("links", "Links", link_rows.page(report)),
        ("recorded", "Op traces", traced_page.recorded(report)),
        ("checked", "Checks", _checked(report)),
        ("source", "In the source", _source(report)),
        ("measuring", "About this run", _about(report)),
    ]
    return sections(Html("\n").join((charts.hatch(), page_header.header(report))), shown)


# ---- charts


def _step(report: Report) -> Html:
    bar = bars.mean_step(report.anatomy)
    if isinstance(bar, LeftOut):
        return Html()
    rows = []
    for part in report.anatomy:
        key = charts.Key(css=charts.component_class(part.component), kind="box", label="")
        shown = Html(
            '<th scope="row" class="key">{}{}</th><td class="n">{} %</td><td class="n">{}</td><td>{}</td><td>{}{}</td>'
        ).format(
            bars.swatch(key),
            words.component_of(report, part.component),
            words.percent(part.ratio),
            format_ns(part.ns_per_step),
            words.stage_word(part.pipeline_stage) if part.pipeline_stage != "none" else "",
            code(part.name),
            place(part.where, before=" "),
        )
        rows.append(shown)
    head = ("Component", "Share", "Per step", "Pipeline stage", "Largest part")
    source = report.session.step_times.source if report.session.step_times else ""
    times = report.session.step_times
    what = f"Steps of {source}: " if source else ""
    timed = f"the shares are those of {words.plural(times.count, 'timed step')}" if times else ""
    total = f"{what}{format_ns(times.mean_ns)} on average; {timed}." if times else ""
    note = notes([*maker_rows.lines(report.session), *([total] if total else [])])
    bar_card = Html('<div class="card">{}{}</div>').format(note, bar.markup)
    parts = Html('<div class="card">{}</div>').format(table(head, rows, numeric=(1, 2)))
    over_time = charts.anatomy(report.series, report.anatomy)
    if isinstance(over_time, LeftOut):
        return bar_card + parts + figures("", (over_time, "The step over time"))
    return Html('{}<div class="grid charts top">{}{}</div>').format(
        bar_card, parts, figure(over_time, "The same over time")
    )


def _times(report: Report) -> Html:
    if not report.session.steps:
        return Html()
    return figures(
        "",
        (
            charts.step_times(report.series, report.session.step_times, slow_steps.links(report.slow_steps)),
            "Step time over time",
        ),
        (charts.histogram(report.series, report.session.step_times), "Distribution of step times"),
    ) + slow_steps.page(report.slow_steps)


# ---- tables


def _members(report: Report) -> Html:
    """The tasks of the job, if there are several."""
    if report.cluster is None:
        return Html()
    said = [words.SEPARATOR.join(member_rows.head(report.cluster)), *member_rows.rows(report.cluster)]
    return Html('<div class="card">{}</div>').format(notes(said))


def _stages(report: Report) -> Html:
    if not report.stages:
        return Html()
    rows = []
    for stage in report.stages:
        name = words.stage_word(stage.stage)
        if stage.ratio is None:
            share = Html('<td class="n blind" colspan="2">no figure</td>')
        else:
            share = Html('<td class="n">{} %</td><td class="b">{}</td>').format(
                words.percent(stage.ratio), bars.share_bar(stage.ratio)
            )
        rows.append(Html('<th scope="row">{}</th>{}<td>{}</td>').format(name, share, words.basis_text(stage)))
    head = ("Stage", "Share", "", "Basis, or why there is none")
    return Html('<div class="card">{}</div>').format(table(head, rows, numeric=(1,)))


def _tasks(report: Report) -> Html:
    shown = report.tasks[: task_rows.SHOWN]
    if not shown:
        return Html()
    rows = []
    for row in task_rows.rows(shown):
        shown_cells = cells(row[1:-1], numeric=task_rows.NUMERIC, first=1)
        rows.append(Html('<th scope="row">{}</th>{}<td>{}</td>').format(code(row.name), shown_cells, code(row.where)))
    more = task_rows.notes(shown)
    if len(report.tasks) > len(shown):
        more.append(f"{len(report.tasks) - len(shown)} more in report.json")
    head = [title.capitalize() if title.islower() else title for title in task_rows.HEAD]
    return Html('<div class="card">{}{}</div>').format(table(head, rows, numeric=task_rows.NUMERIC), notes(more))


def _checked(report: Report) -> Html:
    if not report.checked:
        return Html('<p class="card calm">No detector ran.</p>')
    blind = any(checked_words.why_not(c) for c in report.checked)
    rows = []
    for c in checked_words.in_order(report.checked):
        said = checked_words.outcome(c)
        why = Html("<td>{}</td>").format(checked_words.why_not(c)) if blind else Html()
        rows.append(
            Html('<th scope="row">{}</th><td>{}</td><td><span class="outcome o-{}">{}</span></td>{}').format(
                c.detector, c.name, c.outcome, said, why
            )
        )
    head = ("Detector", "Looks for", "Outcome", "Why it could not decide")
    shown = table(head if blind else head[:3], rows)
    return Html('<div class="card">{}</div>').format(shown)


def _source(report: Report) -> Html:
    """Static findings in addition to the measured ones: rules say what may be slow, not what was."""
    check = report.source_check
    if check is None:
        return Html()
    rows = [
        Html('<th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>').format(
            f.code, f.title, place(f.where[0]), words.seen_text(f), f.remedies[0].text
        )
        for f in check.findings
    ]
    note = Html.escape(f"Static check: {words.checked_sources(check)}.")
    if check.command:
        note += Html(" To list all: <code>{}</code>.").format(check.command)
    left = Html().join(Html("<li>not checked: {}</li>").format(text) for text in check.left_out)
    shown = table(("Rule", "What", "Where", "In this run", "Remedy"), rows) if rows else Html()
    listed = Html("<ul>{}</ul>").format(left) if left else Html()
    return Html('<div class="card">{}{}{}</div>').format(notes([note]), shown, listed)


def _about(report: Report) -> Html:
    summary, overhead = report.session, report.overhead
    listed = Html().join(
        Html("<li><b>{}</b> {}{}</li>").format(name, text, f" ({count} times)" if count > 1 else "")
        for name, text, count in words.merged_diagnostics(report.diagnostics)
    )
    listed = Html("<ul>{}</ul>").format(listed) if listed else Html()
    if words.is_imported(report):
        said = listed or Html("<p>Nothing was repaired and nothing is missing.</p>")
        what = "Imported: recorded by another tool; stepscope itself measured nothing."
        return Html('<div class="card diagnostics"><p>{}</p><h3>Diagnostics</h3>{}</div>').format(what, said)
    run: list[tuple[str, str]] = [
        ("Session", summary.id),
        ("Command", Html("<code>{}</code>").format(shlex.join(summary.command))),
        ("Framework", words.framework_text(summary)),
        ("Hosts", f"{summary.hosts}"),
        ("Measured processes", f"{summary.processes}"),
        *((("Roles", ", ".join(members)),) if (members := words.process_role_items(summary)) else ()),
        *((("ONNX Runtime", Html("<br>").join(setups)),) if (setups := words.inference_items(summary)) else ()),
        *((("Memory", Html("<br>").join(room)),) if (room := room_words.items(report.memory_room)) else ()),
        ("Run time", format_ns(summary.wall_ns) if summary.wall_ns else "unknown"),
        ("End", verdict.end_text(summary)),
    ]
    cost = [
        ("Share of step time", f"{100 * overhead.ratio:.2f} % ({100 * overhead.low:.2f}-{100 * overhead.high:.2f})"),
        (
            "Records",
            f"{overhead.records:,}" + (f", {format_ns(overhead.record_ns)} each" if overhead.record_ns else ""),
        ),
        ("Sidecar", f"{100 * overhead.sidecar_core_ratio:.2f} % of one core"),
    ]
    for capture in overhead.captures:
        what = f"Captured at {format_ns(capture.at_ns)}"
        cost.append((what, capture_text.line(capture)))
    if overhead.captures:
        cost.append(("Captures in total", f"{100 * overhead.captures_ratio:.2f} % of the job's time"))
    said = listed or Html("<p>No data was lost, and every probe attached.</p>")
    return Html(
        '<div class="grid about"><div class="card"><h3>The run</h3>{}</div>'
        '<div class="card"><h3>Profiling overhead</h3>{}</div>'
        '<div class="card diagnostics"><h3>Diagnostics of stepscope itself</h3>{}</div></div>'
    ).format(facts(run), facts(cost), said)
