"""The report as one page: self-contained, offline, readable without any script (``reports.page.document``).

Every text from the session is escaped by ``reports.page.svg.escape``.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.reports import capture_text, checked_words, maker_rows, task_rows, verdict, words
from stepscope.reports.memory import room_words
from stepscope.reports.page import (
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
from stepscope.reports.page.charts import LeftOut
from stepscope.reports.page.document import document, sections
from stepscope.reports.page.figures import figure, figures
from stepscope.reports.page.finding_card import findings
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import code, facts, place, table
from stepscope.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.report.finding import Report

MIDDLE_DOT = " \u00b7 "


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> str:
    """The page. ``sources``: path to text of the user's files, for excerpts of the code."""
    return document(f"stepscope: {words.subject(report)}", _body(report, sources or {}))


def _body(report: Report, sources: Mapping[str, str]) -> str:
    shown = [
        ("step", "The mean step", _step(report)),
        ("findings", "Findings", findings(report, sources)),
        ("job", "The job", ledger_page.page(report)),
        ("times", "Step times", _times(report)),
        ("resources", "Resources", "" if words.is_imported(report) else resource_charts.page(report.series)),
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
    return sections(f"{charts.hatch()}\n{page_header.header(report)}", shown)


# ---- charts


def _step(report: Report) -> str:
    bar = bars.mean_step(report.anatomy)
    if isinstance(bar, LeftOut):
        return ""
    rows = []
    for part in report.anatomy:
        key = charts.Key(css=charts.component_class(part.component), kind="box", label="")
        cells = (
            f'<th scope="row" class="key">{bars.swatch(key)}{escape(words.component_of(report, part.component))}</th>'
            f'<td class="n">{words.percent(part.ratio)} %</td><td class="n">{format_ns(part.ns_per_step)}</td>'
            f"<td>{escape(words.stage_word(part.pipeline_stage)) if part.pipeline_stage != 'none' else ''}</td>"
            f"<td>{code(part.name)}{place(part.where, before=' ')}</td>"
        )
        rows.append(cells)
    head = ("Component", "Share", "Per step", "Pipeline stage", "Largest part")
    source = report.session.step_times.source if report.session.step_times else ""
    times = report.session.step_times
    what = f"Steps of {escape(source)}: " if source else ""
    total = f"{what}{format_ns(times.mean_ns)} on average over {times.count:,} steady steps." if times else ""
    note = "".join(f'<p class="note">{escape(line)}</p>' for line in maker_rows.lines(report.session))
    note += f'<p class="note">{total}</p>' if total else ""
    bar_card = f'<div class="card">{note}{bar.markup}</div>'
    parts = f'<div class="card">{table(head, rows, numeric=(1, 2))}</div>'
    over_time = charts.anatomy(report.series, report.anatomy)
    if isinstance(over_time, LeftOut):
        return bar_card + parts + figures("", (over_time, "The step over time"))
    return f'{bar_card}<div class="grid charts top">{parts}{figure(over_time, "The same over time")}</div>'


def _times(report: Report) -> str:
    if not report.session.steps:
        return ""
    return figures(
        "",
        (
            charts.step_times(report.series, report.session.step_times, slow_steps.links(report.slow_steps)),
            "Step time over time",
        ),
        (charts.histogram(report.series, report.session.step_times), "Distribution of step times"),
    ) + slow_steps.page(report.slow_steps)


# ---- tables


def _stages(report: Report) -> str:
    if not report.stages:
        return ""
    rows = []
    for stage in report.stages:
        name = escape(words.stage_word(stage.stage))
        if stage.ratio is None:
            share = '<td class="n blind" colspan="2">no figure</td>'
        else:
            share = f'<td class="n">{words.percent(stage.ratio)} %</td><td class="b">{bars.share_bar(stage.ratio)}</td>'
        rows.append(f'<th scope="row">{name}</th>{share}<td>{escape(words.basis_text(stage))}</td>')
    head = ("Stage", "Share", "", "Basis, or why there is none")
    return f'<div class="card">{table(head, rows, numeric=(1,))}</div>'


def _tasks(report: Report) -> str:
    shown = report.tasks[: task_rows.SHOWN]
    if not shown:
        return ""
    rows = []
    for row in task_rows.rows(shown):
        cells = "".join(
            f'<td class="n">{escape(text)}</td>' if i in task_rows.NUMERIC else f"<td>{escape(text)}</td>"
            for i, text in enumerate(row[1:-1], 1)
        )
        rows.append(f'<th scope="row">{code(row.name)}</th>{cells}<td>{code(row.where)}</td>')
    notes = task_rows.notes(shown)
    if len(report.tasks) > len(shown):
        notes.append(f"{len(report.tasks) - len(shown)} more in report.json")
    more = "".join(f'<p class="note">{escape(text)}</p>' for text in notes)
    head = [title.capitalize() if title.islower() else title for title in task_rows.HEAD]
    return f'<div class="card">{table(head, rows, numeric=task_rows.NUMERIC)}{more}</div>'


def _checked(report: Report) -> str:
    if not report.checked:
        return '<p class="card calm">No detector ran.</p>'
    blind = any(checked_words.why_not(c) for c in report.checked)
    rows = []
    for c in checked_words.in_order(report.checked):
        said = checked_words.outcome(c)
        why = f"<td>{escape(checked_words.why_not(c))}</td>" if blind else ""
        rows.append(
            f'<th scope="row">{escape(c.detector)}</th><td>{escape(c.name)}</td>'
            f'<td><span class="outcome o-{c.outcome}">{said}</span></td>{why}'
        )
    head = ("Detector", "Looks for", "Outcome", "Why it could not decide")
    shown = table(head if blind else head[:3], rows)
    return f'<div class="card">{shown}</div>'


def _source(report: Report) -> str:
    """Static findings in addition to the measured ones: rules say what may be slow, not what was."""
    check = report.source_check
    if check is None:
        return ""
    rows = [
        f'<th scope="row">{escape(f.code)}</th><td>{escape(f.title)}</td><td>{place(f.where[0])}</td>'
        f"<td>{words.seen_text(f)}</td><td>{escape(f.remedies[0].text)}</td>"
        for f in check.findings
    ]
    note = f'<p class="note">Static check: {escape(words.checked_sources(check))}.'
    if check.command:
        note += f" To list all: <code>{escape(check.command)}</code>."
    left = "".join(f"<li>not checked: {escape(text)}</li>" for text in check.left_out)
    shown = table(("Rule", "What", "Where", "In this run", "Remedy"), rows) if rows else ""
    return f'<div class="card">{note}</p>{shown}{f"<ul>{left}</ul>" if left else ""}</div>'


def _about(report: Report) -> str:
    summary, overhead = report.session, report.overhead
    notes = "".join(
        f"<li><b>{escape(name)}</b> {escape(text)}{f' ({count} times)' if count > 1 else ''}</li>"
        for name, text, count in words.merged_diagnostics(report.diagnostics)
    )
    if words.is_imported(report):
        said = f"<ul>{notes}</ul>" if notes else "<p>Nothing was repaired and nothing is missing.</p>"
        what = "Imported: recorded by another tool; stepscope itself measured nothing."
        return f'<div class="card diagnostics"><p>{what}</p><h3>Diagnostics</h3>{said}</div>'
    run = [
        ("Session", escape(summary.id)),
        ("Command", f"<code>{escape(shlex.join(summary.command))}</code>"),
        ("Framework", escape(words.framework_text(summary))),
        ("Hosts", f"{summary.hosts}"),
        ("Measured processes", f"{summary.processes}"),
        *((("Roles", escape(", ".join(members))),) if (members := words.process_role_items(summary)) else ()),
        *((("ONNX Runtime", "<br>".join(map(escape, setups))),) if (setups := words.inference_items(summary)) else ()),
        *((("Memory", "<br>".join(map(escape, room))),) if (room := room_words.items(report.memory_room)) else ()),
        ("Run time", format_ns(summary.wall_ns) if summary.wall_ns else "unknown"),
        ("End", escape(verdict.end_text(summary))),
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
        cost.append((escape(what), escape(capture_text.line(capture))))
    if overhead.captures:
        cost.append(("Captures in total", f"{100 * overhead.captures_ratio:.2f} % of the job's time"))
    notes = f"<ul>{notes}</ul>" if notes else "<p>No data was lost, and every probe attached.</p>"
    return (
        f'<div class="grid about"><div class="card"><h3>The run</h3>{facts(run)}</div>'
        f'<div class="card"><h3>Profiling overhead</h3>{facts(cost)}</div>'
        f'<div class="card diagnostics"><h3>Diagnostics of stepscope itself</h3>{notes}</div></div>'
    )
