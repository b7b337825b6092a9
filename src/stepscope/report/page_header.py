"""The header of the page: the main finding in a sentence, and the run in a few figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import checked_words, verdict, words
from stepscope.report.brief import titles
from stepscope.report.document.traces import traced as traced_words
from stepscope.report.marked import Html
from stepscope.tables.units import format_ns, format_rate

if TYPE_CHECKING:
    from stepscope.model.report.report import Report


def header(report: Report) -> Html:
    """The header, as markup."""
    command = words.subject(report)
    tiles = Html().join(_tile(*tile) for tile in _tiles(report))
    return Html(
        '<header>\n<p class="brand"><b>stepscope</b><code>{}</code></p>\n{}\n<dl class="tiles">{}</dl>\n</header>'
    ).format(command, _verdict(report), tiles)


def _verdict(report: Report) -> Html:
    found = words.significant(report)
    head: str
    more: str
    if words.is_imported(report) and not found:
        said = verdict.nothing_text(report)
        head = "Nothing found in the trace" if report.op_traces else "Sampled stacks"
        more = f"{said[0].upper() + said[1:]}."
    elif not found and not report.session.steps:
        said = verdict.no_steps_text(report)
        listed = verdict.listed(report)
        largest = f"The largest part of the run: {titles.title(listed[0])}. " if listed else ""
        head, more = said[0].upper() + said[1:], f"{largest}Everything else that was measured is below."
    elif not found:
        said = verdict.nothing_text(report)
        head = said[0].upper() + said[1:]
        more = f"{words.SEPARATOR.join(checked_words.checked_items(report.checked))}."
    else:
        first = found[0]
        cost = first.cost
        head = Html('<span class="badge sev-{0}">{0}</span> {1}').format(first.severity, titles.title(first))
        fast, low, high = map(words.speedup_text, (cost.ratio, cost.low, cost.high))
        whose = "the traced steps" if words.is_imported(report) else "the job"
        if verdict.of_few_steps(report, first):
            whose = "its steps"
        more = Html.escape(words.cost_text(cost, between_steps=words.is_between_steps(first)).capitalize())
        if cost.basis != "unknown":
            bounds = "" if low == high else f"{low}-{high}, "
            more += Html(": without it, {} should run <b>{}x</b> as fast ({}predicted)").format(whose, fast, bounds)
        more += "."
        if missing := verdict.unexplained_text(report):
            more += f" Not explained: {missing}."
        if note := verdict.steps_note(report):
            more += f" {note[0].upper() + note[1:]}."
        if len(found) > 1:
            more += f" {words.plural(len(found) - 1, 'more finding')} below."
    if unread := verdict.unread_text(report):
        more = Html("<b>{}.</b> {}").format(unread[0].upper() + unread[1:], more)
    return Html('<h1>{}</h1>\n<p class="lead">{}</p>').format(head, more)


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    summary, overhead, times = report.session, report.overhead, report.session.step_times
    rates, busy = summary.throughput, summary.gpu_busy_ratio
    tiles: list[tuple[str, str, str]] = []
    if words.is_imported(report):
        return _imported_tiles(report)
    if rates.samples_per_s is not None:
        more = f"{format_rate(rates.steps_per_s)} steps/s" if rates.steps_per_s is not None else ""
        tiles.append(("Throughput", f"{format_rate(rates.samples_per_s)} samples/s", more))
    elif rates.steps_per_s is not None:
        tiles.append(("Throughput", f"{format_rate(rates.steps_per_s)} steps/s", "samples per step unknown"))
    if times is not None:
        tiles.append(("Mean step", format_ns(times.mean_ns), f"p95 {format_ns(times.p95_ns)}"))
        warm = (
            f"{words.plural(times.warmup_steps, 'warm-up step')}, {format_ns(times.warmup_ns)}"
            if times.warmup_steps
            else ""
        )
        tiles.append(("Steps", words.steps_text(summary).rpartition(" ")[0], warm))
        tiles += [("GPU busy", f"{words.percent(busy)} %", "of the steady steps")] if busy is not None else []
    if not summary.steps:
        for label, key, unit, value in (
            ("CPU", "res:cpu_cores", "cores", lambda v: sum(v) / len(v)),
            ("Peak memory (process)", "res:rss_mb", "MB", max),
        ):
            if series := report.series.get(key):
                tiles.append((label, words.value_text(value(series), unit), "whole job"))
        if summary.processes:
            what = f"{words.printable(summary.member)}, " if summary.member else ""
            tiles.append(("Processes", f"{summary.processes}", what + words.framework_text(summary)))
    ended = verdict.end_text(summary)
    tiles.append(("Run time", format_ns(summary.wall_ns) if summary.wall_ns else "unknown", ended))
    if not summary.steps:
        tiles.append(("Profiling overhead", f"{100 * overhead.sidecar_core_ratio:.1f} %", "of one core"))
        return tiles
    cost = f"{100 * overhead.low:.1f}-{100 * overhead.high:.1f} % of step time"
    tiles.append(("Profiling overhead", f"{100 * overhead.ratio:.1f} %", cost))
    return tiles


def _imported_tiles(report: Report) -> list[tuple[str, str, str]]:
    """Tiles for a session of imported files."""
    traced, traces = report.traced, report.op_traces
    tiles = [("Traces", f"{len(traces)}", ", ".join(dict.fromkeys(trace.format for trace in traces)))]
    tiles.append(("Events", f"{sum(trace.events for trace in traces):,}", "omitted ones not counted"))
    if traced is not None and traced.count:
        tiles.append(("Traced steps", f"{traced.count:,}", traced.name))
        tiles.append(("Mean traced step", format_ns(traced.mean_ns), ""))
    if traced is not None and traced.parts:
        first = traced.parts[0]
        tiles.append(("Largest part", f"{words.percent(first.ratio)} %", traced_words.part_word(first.part)))
    if traced is not None and traced.idle is not None:
        tiles.append(("Device idle", f"{words.percent(traced.idle.ratio)} %", traced.idle.device))
    return tiles


def _tile(label: str, value: str, more: str) -> Html:
    extra = Html("<dd>{}</dd>").format(more) if more else Html()
    amount, _, unit = value.partition(" ")
    unit = Html(" <small>{}</small>").format(unit) if unit else Html()
    return Html('<div><dt>{}</dt><dd class="value">{}{}</dd>{}</div>').format(label, amount, unit, extra)
