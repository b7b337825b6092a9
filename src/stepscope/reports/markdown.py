"""The report as Markdown, for issues and chat: tables, places in the code, evidence, no charts.

Texts from the session are escaped or put in code spans, so that none becomes markup, a link or a mention.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.reports import (
    capture_text,
    checked_words,
    ledger_rows,
    maker_rows,
    op_trace_text,
    task_rows,
    verdict,
    words,
)
from stepscope.reports.memory import room_words
from stepscope.reports.page import call_rows, input_rows, limit_rows, link_rows, op_rows, traced_rows, turn_rows
from stepscope.reports.page.excerpt import excerpt
from stepscope.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.model.report.finding import Evidence, Finding, Report

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
"""Characters with a meaning in CommonMark or in its tables and math."""


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> str:
    """The report as Markdown (CommonMark with tables). ``sources``: path to text, for excerpts of the code."""
    blocks = [
        _head(report),
        *_op_traces(report),
        _anatomy(report),
        *_ledgers(report),
        _traced(report),
        *_findings(report, sources or {}),
        _stages(report),
        _input(report),
    ]
    blocks += [_tasks(report), _ops(report), _calls(report), _limits(report), _links(report), _checked(report)]
    blocks.append(_source(report))
    return "\n\n".join(filter(None, [*blocks, _diagnostics(report)])) + "\n"


def escape(text: str) -> str:
    """Text without markup, mentions or links."""
    flat = SPECIAL.sub(r"\\\1", words.printable(text))
    # a zero-width joiner keeps "@name" and addresses from becoming mentions and links
    return flat.replace("@", "@\u2060").replace("://", ":\u2060//")


def code(text: str) -> str:
    """Arbitrary text as a code span; pipes are escaped because tables are split before spans are parsed."""
    flat = words.printable(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}" if flat else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that already are Markdown; a column whose heading starts with a blank is right-aligned."""
    rules = ["---:" if h.startswith(" ") else "---" for h in head]
    lines = [[h.strip() for h in head], rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _head(report: Report) -> str:
    summary, times = report.session, report.session.step_times
    title = f"## stepscope: {code(words.subject(report))}"
    if words.is_imported(report):
        return title
    items = [words.printable(summary.member)] if summary.member else []
    items += [words.plural(summary.steps, "step") if summary.steps else "no steps seen", words.throughput_text(summary)]
    if times is not None:
        mean, p95 = words.time_pair(times.mean_ns, times.p95_ns)
        items.append(f"step {mean} (p95 {p95})")
    items.append(verdict.gpu_text(report))
    items += [escape(words.framework_text(summary)), verdict.exit_text(summary)]
    items += map(escape, words.process_role_items(summary))
    items += [f"memory: {escape(text)}" for text in room_words.items(report.memory_room)[:1]]
    items += map(escape, room_words.items(report.memory_room)[1:])
    items += map(escape, words.inference_items(summary))
    items.append(words.overhead_text(report.overhead, steps=summary.steps))
    makers = "".join(f"\n- {escape(line)}" for line in maker_rows.lines(summary))
    items.append(escape(verdict.steps_note(report)))
    return title + "\n\n" + " \u00b7 ".join(filter(None, items)) + (makers and f"\n{makers}")


def _anatomy(report: Report) -> str:
    if not report.anatomy:
        return ""
    rows = []
    for part in report.anatomy:
        place = code(words.place_text(part.where)) if part.where else ""
        share, time = words.percent(part.ratio) + " %", format_ns(part.ns_per_step)
        rows.append((escape(words.component_of(report, part.component)), share, time, code(part.name), place))
    return "### The mean step\n\n" + table(("component", " share", " per step", "largest part", "where"), rows)


def _ledgers(report: Report) -> list[str]:
    """The parts of the job's time, and of each maker's if there are several."""
    blocks = []
    for title, entries in ledger_rows.ledgers(report):
        rows = [
            (
                escape(row.label),
                words.percent(row.ratio) + " %",
                format_ns(row.ns),
                escape(row.settled),
                escape(row.text),
                ", ".join(code(words.place_text(where)) for where in row.where),
            )
            for row in ledger_rows.rows(entries)
        ]
        head = ("part", " share", " time", "settled by", "what", "where")
        blocks.append(f"### {escape(title)}\n\n{table(head, rows)}")
    return [*blocks, *_turns(report)]


def _turns(report: Report) -> list[str]:
    """The mean turn, if the job has turns."""
    if report.turns is None:
        return []
    rows = [
        (
            escape(row.label),
            words.percent(row.ratio) + " %",
            format_ns(row.ns),
            ", ".join(code(words.place_text(where)) for where in row.where),
        )
        for row in turn_rows.rows(report.turns)
    ]
    said = escape(f"Turns: {turn_rows.title(report.turns)}.")
    return [f"### The mean turn\n\n{said}\n\n{table(('part', ' share', ' time', 'where'), rows)}"]


def _op_traces(report: Report) -> list[str]:
    """Contents of the session's op traces."""
    if not report.op_traces:
        return []
    rows = []
    for trace in report.op_traces:
        steps = "; ".join(op_trace_text.steps_text(one) for one in trace.steps) or "none seen"
        missing = ", ".join(plane.name for plane in trace.planes if not plane.events)
        rows.append(
            (code(trace.file or trace.name), escape(trace.format), f"{trace.events:,}", escape(steps), escape(missing))
        )
    return ["### Op traces\n\n" + table(("trace", "format", " events", "steps", "not captured"), rows)]


def _traced(report: Report) -> str:
    """Where the traced steps spend their time."""
    traced = report.traced
    if traced is None or not traced.parts:
        return ""
    rows = [
        (
            escape(traced_rows.part_word(part.part)),
            f"{words.percent(part.ratio)} %",
            format_ns(part.ns_per_step),
            escape(traced_rows.part_meaning(part.part)),
        )
        for part in traced.parts
        if part.ratio >= traced_rows.SMALL
    ]
    said = [traced_rows.whole(traced), *(text for _, text in traced_rows.lines(traced)[1:])]
    return "\n\n".join(
        (
            "### Traced steps",
            "\n".join(f"- {escape(text)}" for text in said),
            table(("part", " share", " per step", "meaning"), rows),
        )
    )


def _findings(report: Report, sources: Mapping[str, str]) -> list[str]:
    if not words.significant(report):
        said = escape(verdict.nothing_text(report))
        head = [f"### Findings\n\n{said[0].upper()}{said[1:]}."]
    else:
        missing = verdict.unexplained_text(report)
        head = ["### Findings", *([f"Not explained: {escape(missing)}."] if missing else [])]
    return head + [_finding(i, f, sources) for i, f in enumerate(report.findings, 1)]


def _finding(number: int, finding: Finding, sources: Mapping[str, str]) -> str:
    cost = words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))
    text = [f"#### {number}. {finding.severity}: {escape(finding.title)}"]
    text.append(f"{code(finding.code)} {escape(finding.name)} \u00b7 {cost} \u00b7 {finding.cause}")
    if finding.explanation:
        text.append(escape(finding.explanation))
    for place in finding.where:
        lines = [f"- {code(words.place_text(place))}"]
        shown = excerpt(place, sources)
        if shown is not None and place is finding.where[0]:
            body = [f"{'>' if n.marked else ' '} {n.number:4} {n.text}".rstrip() for n in shown.lines]
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(body))), default=0))
            lines += [f"  {line}" for line in (f"{fence}text", *map(_visible, body), fence)]
        text.append("\n".join(lines))
    if finding.evidence:
        text.append(table(("evidence", " value", " threshold"), (_evidence(e) for e in finding.evidence)))
    for remedy in finding.remedies:
        proof = f" \u2014 {words.proof_word(finding)}: {code(remedy.what_if)}" if remedy.what_if is not None else ""
        proof += f" \u2014 edit: {code(remedy.edit)}" if remedy.edit is not None else ""
        rule = f"{escape(remedy.rule)}, " if remedy.rule else ""
        text.append(f"**Remedy** ({rule}{remedy.safety}): {escape(remedy.text)}{proof}")
    return "\n\n".join(text)


def _visible(line: str) -> str:
    """A line of source that keeps its indentation, with control characters made visible."""
    return line[: len(line) - len(line.lstrip())] + re.sub(r"\S+", lambda m: words.printable(m[0]), line.lstrip())


def _evidence(evidence: Evidence) -> tuple[str, str, str]:
    threshold = "" if evidence.threshold is None else words.value_text(evidence.threshold, evidence.unit)
    value = words.value_text(evidence.value, evidence.unit)
    return code(evidence.metric), escape(value), escape(threshold)


def _stages(report: Report) -> str:
    if not report.stages:
        return ""
    rows = [
        (
            words.stage_word(s.stage),
            "no figure" if s.ratio is None else f"{words.percent(s.ratio)} %",
            escape(words.basis_text(s)),
        )
        for s in report.stages
    ]
    return "### Pipeline stages\n\n" + table(("stage", " share", "basis"), rows)


def _tasks(report: Report) -> str:
    shown = report.tasks[: task_rows.SHOWN]
    if not shown:
        return ""
    head = [f" {title}" if i in task_rows.NUMERIC else title for i, title in enumerate(task_rows.HEAD)]
    body = table(head, [(code(r.name), *map(escape, r[1:-1]), code(r.where)) for r in task_rows.rows(shown)])
    notes = [f"- {escape(text)}" for text in task_rows.notes(shown)]
    if len(report.tasks) > len(shown):
        notes.append(f"- {len(report.tasks) - len(shown)} more in report.json")
    return "\n\n".join(filter(None, ["### Tasks", body, "\n".join(notes)]))


def _ops(report: Report) -> str:
    if report.ops is None:
        return ""
    shown: Sequence[Sequence[str]] = op_rows.rows(report.ops, op_rows.SHOWN)
    titles, numeric = list(op_rows.HEAD), op_rows.NUMERIC
    if not report.ops.makers:
        titles, shown = op_rows.filled(op_rows.OP_HEAD, op_rows.op_rows(report.ops)[: op_rows.SHOWN])
        numeric = op_rows.OP_NUMERIC
    head = [f" {title}" if title in numeric else title for title in titles]
    body = table(head, [[_op_cell(*cell) for cell in zip(titles, row, strict=True)] for row in shown])
    return f"### Ops\n\n{escape(op_rows.summary(report.ops))}.\n\n{body}"


def _input(report: Report) -> str:
    """What the input could reach, if it is more than it reaches."""
    bound = report.input_bound
    said = input_rows.short(bound)
    if bound is None or not said:
        return ""
    rows = [
        [code(cell) if i in (1, 4) else escape(cell) for i, cell in enumerate(row)] for row in input_rows.edits(bound)
    ]
    fence = f"```diff\n{bound.diff}```" if bound.diff and "```" not in bound.diff else ""
    edits = table(input_rows.EDITS, rows) if rows else ""
    cores = f"{escape(input_rows.by_cores(bound))}." if bound.by_cores else ""
    return "\n\n".join(filter(None, ["### Input at best", f"{escape(bound.text)}.", edits, cores, fence]))


def _calls(report: Report) -> str:
    calls = report.system_calls
    if calls is None:
        return ""
    head = [f" {title}" if title in call_rows.NUMERIC else title for title in call_rows.HEAD]
    body = table(head, [[escape(cell) for cell in row] for row in call_rows.rows(calls)])
    return f"### System calls\n\n{escape(call_rows.said(calls))}.\n\n{body}"


def _limits(report: Report) -> str:
    if report.limits is None:
        return ""
    head = [f" {title}" if title in limit_rows.NUMERIC else title for title in limit_rows.HEAD]
    shown = limit_rows.rows(report.limits)
    body = table(head, [[_op_cell(*cell) for cell in zip(limit_rows.HEAD, row, strict=True)] for row in shown])
    notes = "\n".join(f"- {escape(text)}" for text in limit_rows.notes(report.limits))
    return "\n\n".join(filter(None, ["### Limits", f"{escape(report.limits.text)}.", body, notes]))


def _links(report: Report) -> str:
    head = [f" {title}" if title in link_rows.NUMERIC else title for title in link_rows.HEAD]
    shown = [[escape(text) for text in row] for row in link_rows.rows(report.links)]
    clocks = "\n".join(f"- clock of {escape(text)}" for text in link_rows.clocks(report))
    body = table(head, shown) if shown else ""
    return "\n\n".join(filter(None, ["### Links", body, clocks])) if body or clocks else ""


def _op_cell(title: str, text: str) -> str:
    return code(text) if title in {"op", "where"} else escape(text)


def _checked(report: Report) -> str:
    rows = [(code(c.detector), escape(c.name), c.outcome, escape(checked_words.why_not(c))) for c in report.checked]
    summary = escape(" \u00b7 ".join(checked_words.checked_items(report.checked)))
    body = table(("detector", "name", "outcome", "why"), rows)
    return f"### Checked\n\n{summary}\n\n{body}" if rows else f"### Checked\n\n{summary}"


def _source(report: Report) -> str:
    check = report.source_check
    if check is None:
        return ""
    head = f"### In the source\n\n{escape(words.checked_sources(check))}."
    rows = [
        (
            code(f.code),
            escape(f.title),
            code(words.place_text(f.where[0])),
            words.seen_text(f),
            code(f.remedies[0].text),
        )
        for f in check.findings
    ]
    parts = [head, table(("rule", "what", "where", "in this run", "remedy"), rows) if rows else ""]
    if check.command:
        parts.append(f"List all: {code(check.command)}")
    parts.append("\n".join(f"- not checked: {code(text)}" for text in check.left_out))
    return "\n\n".join(filter(None, parts))


def _diagnostics(report: Report) -> str:
    overhead = report.overhead
    lines = [
        f"- {code(name)} {escape(text)}" + (f" ({count} times)" if count > 1 else "")
        for name, text, count in words.merged_diagnostics(report.diagnostics)
    ]
    cost = words.overhead_text(overhead, steps=1)
    records = f"{overhead.records:,} records of {format_ns(overhead.record_ns)} each"
    sidecar = f"sidecar {words.percent(overhead.sidecar_core_ratio)} % of one core"
    captures = [f"- captured at {format_ns(c.at_ns)}: {escape(capture_text.line(c))}" for c in overhead.captures]
    return "\n".join(["### Overhead and diagnostics\n", f"- {cost}; {records}; {sidecar}", *captures, *lines])
