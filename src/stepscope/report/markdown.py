"""The report as Markdown, for issues and chat: tables, places in the code, evidence, no charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import (
    capture_text,
    checked_words,
    ledger_rows,
    maker_rows,
    member_rows,
    op_trace_text,
    task_rows,
    verdict,
    words,
)
from stepscope.report.marked import Md, block, code, listed, table
from stepscope.report.memory import room_words
from stepscope.report.page import call_rows, input_rows, limit_rows, link_rows, op_rows, traced_rows, turn_rows
from stepscope.report.page.excerpt import excerpt
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Evidence, Finding

DOT = Md(" \u00b7 ")


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> Md:
    """The report as Markdown (CommonMark with tables). ``sources``: path to text, for excerpts of the code."""
    blocks = [
        _head(report),
        _members(report),
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
    return Md("\n\n").join(filter(None, [*blocks, _diagnostics(report)])) + Md("\n")


def _head(report: Report) -> Md:
    summary, times = report.session, report.session.step_times
    title = Md("## stepscope: {}").format(code(words.subject(report)))
    if words.is_imported(report):
        return title
    items = [verdict.unread_text(report), words.printable(summary.member)]
    items += [words.steps_text(summary) if summary.steps else verdict.no_steps_text(report)]
    items.append(words.throughput_text(summary))
    if times is not None:
        mean, p95 = words.time_pair(times.mean_ns, times.p95_ns)
        items.append(f"step {mean} (p95 {p95})")
    items.append(verdict.gpu_text(report))
    items += [words.framework_text(summary), verdict.exit_text(summary)]
    items += words.process_role_items(summary)
    items += [Md("memory: {}").format(text) for text in room_words.items(report.memory_room)[:1]]
    items += room_words.items(report.memory_room)[1:]
    items += words.inference_items(summary)
    items.append(words.overhead_text(report.overhead, steps=summary.steps))
    makers = Md().join(Md("\n- {}").format(line) for line in maker_rows.lines(summary))
    items.append(verdict.steps_note(report))
    return title + Md("\n\n") + DOT.join(filter(None, items)) + (Md("\n{}").format(makers) if makers else Md())


def _members(report: Report) -> Md:
    """The tasks of the job, if there are several."""
    if report.cluster is None:
        return Md()
    rows = Md().join(Md("\n- {}").format(row) for row in member_rows.rows(report.cluster))
    return Md("### Members\n\n{}\n{}").format(words.SEPARATOR.join(member_rows.head(report.cluster)), rows)


def _anatomy(report: Report) -> Md:
    if not report.anatomy:
        return Md()
    rows = []
    for part in report.anatomy:
        place = code(words.place_text(part.where)) if part.where else ""
        share, time = words.percent(part.ratio) + " %", format_ns(part.ns_per_step)
        rows.append((words.component_of(report, part.component), share, time, code(part.name), place))
    return Md("### The mean step\n\n") + table(("component", " share", " per step", "largest part", "where"), rows)


def _ledgers(report: Report) -> list[str]:
    """The parts of the job's time, and of each maker's if there are several."""
    blocks = []
    for title, entries in ledger_rows.ledgers(report):
        rows = [
            (
                row.label,
                words.percent(row.ratio) + " %",
                format_ns(row.ns),
                row.settled,
                row.text,
                Md(", ").join(code(words.place_text(where)) for where in row.where),
            )
            for row in ledger_rows.rows(entries)
        ]
        head = ("part", " share", " time", "settled by", "what", "where")
        blocks.append(Md("### {}\n\n{}").format(title, table(head, rows)))
    return [*blocks, *_turns(report)]


def _turns(report: Report) -> list[str]:
    """The mean turn, if the job has turns."""
    if report.turns is None:
        return []
    rows = [
        (
            row.label,
            words.percent(row.ratio) + " %",
            format_ns(row.ns),
            Md(", ").join(code(words.place_text(where)) for where in row.where),
        )
        for row in turn_rows.rows(report.turns)
    ]
    said = f"Turns: {turn_rows.title(report.turns)}."
    return [Md("### The mean turn\n\n{}\n\n{}").format(said, table(("part", " share", " time", "where"), rows))]


def _op_traces(report: Report) -> list[str]:
    """Contents of the session's op traces."""
    if not report.op_traces:
        return []
    rows = []
    for trace in report.op_traces:
        steps = "; ".join(op_trace_text.steps_text(one) for one in trace.steps) or "none seen"
        missing = ", ".join(plane.name for plane in trace.planes if not plane.events)
        rows.append((code(trace.file or trace.name), trace.format, f"{trace.events:,}", steps, missing))
    return [Md("### Op traces\n\n") + table(("trace", "format", " events", "steps", "not captured"), rows)]


def _traced(report: Report) -> Md:
    """Where the traced steps spend their time."""
    traced = report.traced
    if traced is None or not traced.parts:
        return Md()
    rows = [
        (
            traced_rows.part_word(part.part),
            f"{words.percent(part.ratio)} %",
            format_ns(part.ns_per_step),
            traced_rows.part_meaning(part.part),
        )
        for part in traced.parts
        if part.ratio >= traced_rows.SMALL
    ]
    said = [traced_rows.whole(traced), *(text for _, text in traced_rows.lines(traced)[1:])]
    return Md("\n\n").join(
        (
            Md("### Traced steps"),
            listed(said),
            table(("part", " share", " per step", "meaning"), rows),
        )
    )


def _findings(report: Report, sources: Mapping[str, str]) -> list[Md]:
    if not words.significant(report):
        said = verdict.nothing_text(report)
        head = [Md("### Findings\n\n{}{}.").format(said[0].upper(), said[1:])]
    else:
        missing = verdict.unexplained_text(report)
        head = [Md("### Findings"), *([Md("Not explained: {}.").format(missing)] if missing else [])]
    return head + [_finding(i, f, sources) for i, f in enumerate(report.findings, 1)]


def _finding(number: int, finding: Finding, sources: Mapping[str, str]) -> Md:
    cost = words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))
    text = [Md("#### {}. {}: {}").format(number, finding.severity, finding.title)]
    text.append(DOT.join((Md("{} {}").format(code(finding.code), finding.name), cost, finding.cause)))
    if finding.explanation:
        text.append(Md.escape(finding.explanation))
    for place in finding.where:
        lines = [Md("- {}").format(code(words.place_text(place)))]
        shown = excerpt(place, sources)
        if shown is not None and place is finding.where[0]:
            body = (f"{'>' if n.marked else ' '} {n.number:4} {n.text}".rstrip() for n in shown.lines)
            lines.append(block("text", body, indent="  "))
        text.append(Md("\n").join(lines))
    if finding.evidence:
        text.append(table(("evidence", " value", " threshold"), (_evidence(e) for e in finding.evidence)))
    for remedy in finding.remedies:
        proof = (
            Md(" \u2014 {}: {}").format(words.proof_word(finding), code(remedy.what_if))
            if remedy.what_if is not None
            else Md()
        )
        proof += Md(" \u2014 edit: {}").format(code(remedy.edit)) if remedy.edit is not None else Md()
        rule = Md("{}, ").format(remedy.rule) if remedy.rule else Md()
        text.append(Md("**Remedy** ({}{}): {}{}").format(rule, remedy.safety, remedy.text, proof))
    return Md("\n\n").join(text)


def _evidence(evidence: Evidence) -> tuple[str, str, str]:
    threshold = "" if evidence.threshold is None else words.value_text(evidence.threshold, evidence.unit)
    value = words.value_text(evidence.value, evidence.unit)
    return code(evidence.metric), value, threshold


def _stages(report: Report) -> Md:
    if not report.stages:
        return Md()
    rows = [
        (
            words.stage_word(s.stage),
            "no figure" if s.ratio is None else f"{words.percent(s.ratio)} %",
            words.basis_text(s),
        )
        for s in report.stages
    ]
    return Md("### Pipeline stages\n\n") + table(("stage", " share", "basis"), rows)


def _tasks(report: Report) -> Md:
    shown = report.tasks[: task_rows.SHOWN]
    if not shown:
        return Md()
    head = [f" {title}" if i in task_rows.NUMERIC else title for i, title in enumerate(task_rows.HEAD)]
    body = table(head, [(code(r.name), *r[1:-1], code(r.where)) for r in task_rows.rows(shown)])
    notes = [Md("- {}").format(text) for text in task_rows.notes(shown)]
    if len(report.tasks) > len(shown):
        notes.append(Md("- {} more in report.json").format(len(report.tasks) - len(shown)))
    return Md("\n\n").join(filter(None, [Md("### Tasks"), body, Md("\n").join(notes)]))


def _ops(report: Report) -> Md:
    if report.ops is None:
        return Md()
    shown: Sequence[Sequence[str]] = op_rows.rows(report.ops, op_rows.SHOWN)
    titles, numeric = list(op_rows.HEAD), op_rows.NUMERIC
    if not report.ops.makers:
        titles, shown = op_rows.filled(op_rows.OP_HEAD, op_rows.op_rows(report.ops)[: op_rows.SHOWN])
        numeric = op_rows.OP_NUMERIC
    head = [f" {title}" if title in numeric else title for title in titles]
    body = table(head, [[_op_cell(*cell) for cell in zip(titles, row, strict=True)] for row in shown])
    return Md("### Ops\n\n{}.\n\n{}").format(op_rows.summary(report.ops, words.analysed_file(report)), body)


def _input(report: Report) -> Md:
    """What the input could reach, if it is more than it reaches."""
    bound = report.input_bound
    said = input_rows.short(bound)
    if bound is None or not said:
        return Md()
    rows = [[code(cell) if i in (1, 4) else cell for i, cell in enumerate(row)] for row in input_rows.edits(bound)]
    fence = block("diff", bound.diff.removesuffix("\n").split("\n")) if bound.diff else Md()
    edits = table(input_rows.EDITS, rows) if rows else ""
    cores = Md("{}.").format(input_rows.by_cores(bound)) if bound.by_cores else Md()
    return Md("\n\n").join(filter(None, [Md("### Input at best"), Md("{}.").format(bound.text), edits, cores, fence]))


def _calls(report: Report) -> Md:
    calls = report.system_calls
    if calls is None:
        return Md()
    head = [f" {title}" if title in call_rows.NUMERIC else title for title in call_rows.HEAD]
    body = table(head, call_rows.rows(calls))
    return Md("### System calls\n\n{}.\n\n{}").format(call_rows.said(calls), body)


def _limits(report: Report) -> Md:
    if report.limits is None:
        return Md()
    head = [f" {title}" if title in limit_rows.NUMERIC else title for title in limit_rows.HEAD]
    shown = limit_rows.rows(report.limits)
    body = table(head, [[_op_cell(*cell) for cell in zip(limit_rows.HEAD, row, strict=True)] for row in shown])
    notes = listed(limit_rows.notes(report.limits))
    return Md("\n\n").join(filter(None, [Md("### Limits"), Md("{}.").format(report.limits.text), body, notes]))


def _links(report: Report) -> Md:
    head = [f" {title}" if title in link_rows.NUMERIC else title for title in link_rows.HEAD]
    shown = link_rows.rows(report.links)
    clocks = Md("\n").join(Md("- clock of {}").format(text) for text in link_rows.clocks(report))
    body = table(head, shown) if shown else Md()
    return Md("\n\n").join(filter(None, [Md("### Links"), body, clocks])) if body or clocks else Md()


def _op_cell(title: str, text: str) -> str:
    return code(text) if title in {"op", "where"} else text


def _checked(report: Report) -> Md:
    rows = [(code(c.detector), c.name, c.outcome, checked_words.why_not(c)) for c in report.checked]
    summary = DOT.join(checked_words.checked_items(report.checked))
    body = table(("detector", "name", "outcome", "why"), rows)
    return Md("### Checked\n\n{}\n\n{}").format(summary, body) if rows else Md("### Checked\n\n{}").format(summary)


def _source(report: Report) -> Md:
    check = report.source_check
    if check is None:
        return Md()
    head = Md("### In the source\n\n{}.").format(words.checked_sources(check))
    rows = [
        (
            code(f.code),
            f.title,
            code(words.place_text(f.where[0])),
            words.seen_text(f),
            code(f.remedies[0].text),
        )
        for f in check.findings
    ]
    parts = [head, table(("rule", "what", "where", "in this run", "remedy"), rows) if rows else ""]
    if check.command:
        parts.append(Md("List all: {}").format(code(check.command)))
    parts.append(Md("\n").join(Md("- not checked: {}").format(code(text)) for text in check.left_out))
    return Md("\n\n").join(filter(None, parts))


def _diagnostics(report: Report) -> Md:
    overhead = report.overhead
    lines = [
        Md("- {} {}{}").format(code(name), text, f" ({count} times)" if count > 1 else "")
        for name, text, count in words.merged_diagnostics(report.diagnostics)
    ]
    if words.is_imported(report):
        return Md("\n").join([Md("### Diagnostics\n"), *lines]) if lines else Md()
    cost = words.overhead_text(overhead, steps=1)
    records = f"{overhead.records:,} records of {format_ns(overhead.record_ns)} each"
    sidecar = f"sidecar {words.percent(overhead.sidecar_core_ratio)} % of one core"
    captures = [Md("- captured at {}: {}").format(format_ns(c.at_ns), capture_text.line(c)) for c in overhead.captures]
    return Md("\n").join(
        [Md("### Overhead and diagnostics\n"), Md("- {}; {}; {}").format(cost, records, sidecar), *captures, *lines]
    )
