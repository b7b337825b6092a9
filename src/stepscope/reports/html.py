"""The report as one page: self-contained, offline, readable without any script (it has none).

The page refuses to run anything: its content-security policy allows its one style sheet, by hash, and nothing else.
Every text of the session is escaped by ``reports.svg.escape``.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from importlib import resources
from typing import TYPE_CHECKING

from stepscope.reports import capture_text, charts, metric_charts, op_rows, task_rows, words
from stepscope.reports.charts import Chart, LeftOut, Resource
from stepscope.reports.finding_card import findings
from stepscope.reports.svg import escape
from stepscope.reports.tables import code, facts, place, table
from stepscope.units import format_ns, format_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.finding import Report

MIDDLE_DOT = " \u00b7 "
ICON = (
    "data:image/svg+xml;base64,"
    + base64.b64encode(
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        b'<path d="M1 14V9h4V5h4V2h6v12z" fill="#0072B2"/></svg>'
    ).decode()
)
OUTCOMES = {
    "found": "found",
    "clear": "clear",
    "undecided": "undecided",
    "not-applicable": "not applicable",
    "failed": "failed",
}
CPU = (
    Resource(key="res:cpu_cores", css="s-job", label="job"),
    Resource(key="res:others_cores", css="s-others", label="others"),
    Resource(key="res:wait_cores", css="s-wait", label="waiting for a CPU"),
)
CPU_LIMIT = Resource(key="res:cpu_limit_cores", css="s-limit", label="what the job may use")
MEMORY = (Resource(key="res:rss_mb", css="s-memory", label="resident"),)
MEMORY_LIMIT = Resource(key="res:memory_limit_mb", css="s-limit", label="limit of the cgroup")
DISK = (
    Resource(key="res:read_mb_s", css="s-read", label="read"),
    Resource(key="res:write_mb_s", css="s-write", label="written"),
)
KERNEL = (
    Resource(key="res:kernel_percent", css="s-job", label="in the kernel"),
    Resource(key="res:fault_percent", css="s-write", label="in page faults"),
)
DISK_LIMIT = Resource(key="res:disk_limit_mb_s", css="s-limit", label="limit of the cgroup")
BUSY = (Resource(key="res:busiest_core", css="s-job", label="busiest CPU"),)
NETWORK = (
    Resource(key="res:net_in_mb_s", css="s-read", label="in"),
    Resource(key="res:net_out_mb_s", css="s-write", label="out"),
)
NETWORK_LIMIT = Resource(key="res:net_limit_mb_s", css="s-limit", label="speed of the link")
DISK_BUSY = (Resource(key="res:disk_busy_percent", css="s-read", label="busiest disk"),)
GPU = (Resource(key="res:gpu_busy_percent", css="s-job", label="busy"),)
GPU_MEMORY = (
    Resource(key="res:gpu_reserved_mb", css="s-memory", label="reserved"),
    Resource(key="res:gpu_live_mb", css="s-write", label="live"),
)
GPU_LIMIT = Resource(key="res:gpu_limit_mb", css="s-limit", label="memory of the device")
PCIE = (
    Resource(key="res:pcie_in_mb_s", css="s-read", label="to the device"),
    Resource(key="res:pcie_out_mb_s", css="s-write", label="from the device"),
)


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> str:
    """The page. ``sources``: path to text of the user's files, for excerpts of the code."""
    style = resources.files("stepscope.reports").joinpath("report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    title = f"stepscope: {escape(shlex.join(report.session.command) or report.session.id)}"
    head = "\n".join(
        (
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<link rel="icon" href="{ICON}">',
            f"<title>{title}</title>",
            f"<style>{style}</style>",
        )
    )
    body = _body(report, sources or {})
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _body(report: Report, sources: Mapping[str, str]) -> str:
    sections = [
        ("step", "The mean step", _step(report)),
        ("findings", "Findings", findings(report, sources)),
        ("times", "Step times", _times(report)),
        ("resources", "Resources", _resources(report)),
        ("metrics", "Metrics of the program", _figures("", *metric_charts.metrics(report.series))),
        ("stages", "Pipeline stages", _stages(report)),
        ("tasks", "Tasks", _tasks(report)),
        ("ops", "Ops", op_rows.page(report.ops)),
        ("checked", "What was checked", _checked(report)),
        ("source", "In the source", _source(report)),
        ("measuring", "About this run", _about(report)),
    ]
    shown = [(key, title, text) for key, title, text in sections if text]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in shown)
    parts = [
        '<a class="skip" href="#main">Skip to the report</a>',
        charts.hatch(),
        _header(report),
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
        '<main id="main">',
    ]
    for key, title, text in shown:
        parts.append(
            f'<section id="{key}" aria-labelledby="{key}-h">\n<h2 id="{key}-h">{title}</h2>\n{text}\n</section>'
        )
    return "\n".join([*parts, "</main>"])


# ---- header


def _header(report: Report) -> str:
    summary = report.session
    command = escape(shlex.join(summary.command)) or escape(summary.id)
    tiles = "".join(_tile(*tile) for tile in _tiles(report))
    return (
        f'<header>\n<p class="brand"><b>stepscope</b><code>{command}</code></p>\n'
        f'{_verdict(report)}\n<dl class="tiles">{tiles}</dl>\n</header>'
    )


def _verdict(report: Report) -> str:
    found = words.significant(report)
    if not report.session.steps:
        head, more = "No steps seen", "What was measured all the same is below."
    elif not found:
        head = words.NOTHING[0].upper() + words.NOTHING[1:]
        more = f"{escape(MIDDLE_DOT.join(words.checked_items(report.checked)))}."
    else:
        first = found[0]
        cost = first.cost
        head = f'<span class="badge sev-{first.severity}">{first.severity}</span> {escape(first.title)}'
        fast, low, high = map(words.speedup_text, (cost.ratio, cost.low, cost.high))
        more = (
            f"{words.cost_text(cost, between_steps=words.is_between_steps(first)).capitalize()}: "
            f"without it the job is predicted to run <b>{fast} times</b> as fast ({low}-{high})."
        )
        if len(found) > 1:
            more += f" {words.plural(len(found) - 1, 'more finding')} below."
    return f'<h1>{head}</h1>\n<p class="lead">{more}</p>'


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    summary, overhead, times = report.session, report.overhead, report.session.step_times
    rates = summary.throughput
    tiles: list[tuple[str, str, str]] = []
    if rates.samples_per_s is not None:
        more = f"{format_rate(rates.steps_per_s)} steps/s" if rates.steps_per_s is not None else ""
        tiles.append(("Throughput", f"{format_rate(rates.samples_per_s)} samples/s", more))
    elif rates.steps_per_s is not None:
        tiles.append(("Throughput", f"{format_rate(rates.steps_per_s)} steps/s", "samples per step unknown"))
    if times is not None:
        tiles.append(("Mean step", format_ns(times.mean_ns), f"p95 {format_ns(times.p95_ns)}"))
        warm = f"{times.warmup_steps} of warm-up, {format_ns(times.warmup_ns)}" if times.warmup_steps else ""
        tiles.append(("Steps", f"{summary.steps:,}", warm))
    if not summary.steps:
        for label, key, unit, value in (
            ("CPU", "res:cpu_cores", "cores", lambda v: sum(v) / len(v)),
            ("Memory at most", "res:rss_mb", "MB", max),
        ):
            if series := report.series.get(key):
                tiles.append((label, words.value_text(value(series), unit), "of the whole job"))
        if summary.processes:
            tiles.append(("Processes", f"{summary.processes}", words.framework_text(summary)))
    ended = words.exit_text(summary.exit_code) or "exit code 0"
    tiles.append(("Run time", format_ns(summary.wall_ns) if summary.wall_ns else "unknown", ended))
    if not summary.steps:
        tiles.append(("Measuring cost", f"{100 * overhead.sidecar_core_ratio:.1f} %", "of one core, beside the job"))
        return tiles
    cost = f"{100 * overhead.low:.1f}-{100 * overhead.high:.1f} % of step time"
    tiles.append(("Measuring cost", f"{100 * overhead.ratio:.1f} %", cost))
    return tiles


def _tile(label: str, value: str, more: str) -> str:
    extra = f"<dd>{escape(more)}</dd>" if more else ""
    amount, _, unit = value.partition(" ")
    unit = f" <small>{escape(unit)}</small>" if unit else ""
    return f'<div><dt>{label}</dt><dd class="value">{escape(amount)}{unit}</dd>{extra}</div>'


# ---- charts


def _figures(css: str, *figures: tuple[Chart | LeftOut, str]) -> str:
    """Charts side by side; below them one line for each that had to be left out."""
    drawn = "".join(_figure(chart, title) for chart, title in figures if isinstance(chart, Chart))
    absent = "".join(
        f"<li>{title} is left out: {escape(chart.why)}.</li>" for chart, title in figures if isinstance(chart, LeftOut)
    )
    grid = f'<div class="grid charts {css}">{drawn}</div>' if drawn else ""
    return grid + (f'<ul class="card left-out">{absent}</ul>' if absent else "")


def _figure(chart: Chart, title: str) -> str:
    head = f'<h3 id="{chart.name}-title">{title}</h3>'
    keys = "".join(f"<li>{charts.swatch(key)}{escape(key.label)}</li>" for key in chart.keys)
    legend = f'<ul class="legend">{keys}</ul>' if keys else ""
    summary = f'<p class="note">{escape(chart.summary)}</p>' if chart.summary else ""
    caption = f"<figcaption>{head}{summary}{legend}</figcaption>"
    return f'<figure class="card chart">{caption}<div class="plot">{chart.markup}</div></figure>'


def _step(report: Report) -> str:
    bar = charts.mean_step(report.anatomy)
    if isinstance(bar, LeftOut):
        return ""
    rows = []
    for part in report.anatomy:
        key = charts.Key(css=charts.component_class(part.component), kind="box", label="")
        cells = (
            f'<th scope="row" class="key">{charts.swatch(key)}{escape(words.component_word(part.component))}</th>'
            f'<td class="n">{words.percent(part.ratio)} %</td><td class="n">{format_ns(part.ns_per_step)}</td>'
            f"<td>{escape(words.stage_word(part.pipeline_stage)) if part.pipeline_stage != 'none' else ''}</td>"
            f"<td>{code(part.name)}{place(part.where, before=' ')}</td>"
        )
        rows.append(cells)
    head = ("Component", "Share", "Per step", "Pipeline stage", "Largest part")
    source = report.session.step_times.source if report.session.step_times else ""
    times = report.session.step_times
    what = f"Steps of {escape(source)}: " if source else ""
    total = f"{what}{format_ns(times.mean_ns)} in the mean of {times.count:,} steady steps." if times else ""
    note = f'<p class="note">{total}</p>' if total else ""
    bar_card = f'<div class="card">{note}{bar.markup}</div>'
    parts = f'<div class="card">{table(head, rows, numeric=(1, 2))}</div>'
    over_time = charts.anatomy(report.series, report.anatomy)
    if isinstance(over_time, LeftOut):
        return bar_card + parts + _figures("", (over_time, "The step over time"))
    return f'{bar_card}<div class="grid charts top">{parts}{_figure(over_time, "The same over time")}</div>'


def _times(report: Report) -> str:
    if not report.session.steps:
        return ""
    return _figures(
        "",
        (charts.step_times(report.series, report.session.step_times), "Step time over time"),
        (charts.histogram(report.series, report.session.step_times), "How many steps take how long"),
    )


def _resources(report: Report) -> str:
    series, low = report.series, charts.LOW
    memory = charts.resource("memory", "MB", series, MEMORY, height=low, limit=MEMORY_LIMIT)
    disk = charts.resource("disk", "MB/s", series, DISK, height=low, limit=DISK_LIMIT)
    beside_two = isinstance(memory, Chart) and isinstance(disk, Chart)
    height = charts.TALL if beside_two else charts.HEIGHT
    cpu = charts.resource("cpu", "cores", series, CPU, height=height, limit=CPU_LIMIT)
    shown = _figures("tall-first", (cpu, "CPU"), (memory, "Memory"), (disk, "Disk"))
    more: list[tuple[Chart | LeftOut, str]] = []
    for name, unit, lines, limit, title in (
        ("network", "MB/s", NETWORK, NETWORK_LIMIT, "Network"),
        ("disk-busy", "%", DISK_BUSY, None, "Busiest disk"),
        ("busiest-core", "cores", BUSY, None, "Busiest CPU"),
        ("kernel", "%", KERNEL, None, "Kernel and page faults, of the job's CPU time"),
        ("gpu", "%", GPU, None, "GPU"),
        ("gpu-memory", "MB", GPU_MEMORY, GPU_LIMIT, "GPU memory"),
        ("pcie", "MB/s", PCIE, None, "PCIe"),
    ):
        if any(series.get(line.key) for line in lines):
            more.append((charts.resource(name, unit, series, lines, height=low, limit=limit), title))
    return shown + (_figures("", *more) if more else "")


# ---- tables


def _stages(report: Report) -> str:
    if not report.stages:
        return ""
    rows = []
    for stage in report.stages:
        name = escape(words.stage_word(stage.stage))
        if stage.ratio is None:
            share = '<td class="n blind" colspan="2">could not look</td>'
        else:
            share = (
                f'<td class="n">{words.percent(stage.ratio)} %</td><td class="b">{charts.share_bar(stage.ratio)}</td>'
            )
        rows.append(f'<th scope="row">{name}</th>{share}<td>{escape(words.basis_text(stage))}</td>')
    head = ("Stage", "Share", "", "On what it rests, or why not")
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
    order = {outcome: i for i, outcome in enumerate(("found", "failed", "undecided", "not-applicable", "clear"))}
    blind = any(words.why_not(c) for c in report.checked)
    rows = []
    for c in sorted(report.checked, key=lambda c: (order[c.outcome], not c.missing, c.detector)):
        said = "could not look" if c.outcome == "not-applicable" and c.missing else OUTCOMES[c.outcome]
        why = f"<td>{escape(words.why_not(c))}</td>" if blind else ""
        rows.append(
            f'<th scope="row">{escape(c.detector)}</th><td>{escape(c.name)}</td>'
            f'<td><span class="outcome o-{c.outcome}">{said}</span></td>{why}'
        )
    head = ("Detector", "Looks for", "Outcome", "Why it could not look")
    shown = table(head if blind else head[:3], rows)
    return f'<div class="card">{shown}</div>'


def _source(report: Report) -> str:
    """What the static checker sees beside the findings: its rules say what may be slow, not what was."""
    check = report.source_check
    if check is None:
        return ""
    rows = [
        f'<th scope="row">{escape(f.code)}</th><td>{escape(f.title)}</td><td>{place(f.where[0])}</td>'
        f"<td>{words.seen_text(f)}</td><td>{escape(f.remedies[0].text)}</td>"
        for f in check.findings
    ]
    note = f'<p class="note">Checked without running: {escape(words.checked_sources(check))}.'
    if check.command:
        note += f" All of what is below: <code>{escape(check.command)}</code>."
    left = "".join(f"<li>not checked: {escape(text)}</li>" for text in check.left_out)
    shown = table(("Rule", "What", "Where", "In this run", "Remedy"), rows) if rows else ""
    return f'<div class="card">{note}</p>{shown}{f"<ul>{left}</ul>" if left else ""}</div>'


def _about(report: Report) -> str:
    summary, overhead = report.session, report.overhead
    run = [
        ("Session", escape(summary.id)),
        ("Command", f"<code>{escape(shlex.join(summary.command))}</code>"),
        ("Framework", escape(words.framework_text(summary))),
        ("Hosts", f"{summary.hosts}"),
        ("Measured processes", f"{summary.processes}"),
        *((("What they do", escape(", ".join(members))),) if (members := words.member_items(summary)) else ()),
        ("Run time", format_ns(summary.wall_ns) if summary.wall_ns else "unknown"),
        ("End", escape(words.exit_text(summary.exit_code)) or "exit code 0"),
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
        what = f"Trace of {words.plural(capture.steps, 'step')} at {format_ns(capture.at_ns)}"
        cost.append((escape(what), escape(capture_text.cost(capture))))
    if overhead.captures:
        cost.append(("Captures in all", f"{100 * overhead.captures_ratio:.2f} % of the job's time"))
    notes = "".join(
        f"<li><b>{escape(name)}</b> {escape(text)}{f' ({count} times)' if count > 1 else ''}</li>"
        for name, text, count in words.merged_diagnostics(report.diagnostics)
    )
    notes = f"<ul>{notes}</ul>" if notes else "<p>Nothing was lost, and every probe attached.</p>"
    return (
        f'<div class="grid about"><div class="card"><h3>The run</h3>{facts(run)}</div>'
        f'<div class="card"><h3>What measuring cost</h3>{facts(cost)}</div>'
        f'<div class="card diagnostics"><h3>Diagnostics of stepscope itself</h3>{notes}</div></div>'
    )
