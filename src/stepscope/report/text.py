"""The report in the terminal: about ten lines of plain text at any width, with optional colours.

It draws nothing and gives no advice beyond the findings; the page (``report.page.html``) has the charts.
``detectors.base.rank`` puts the findings in order; the golden files in ``tests/report/golden`` fix the layout.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.cells import cell_len

from stepscope.report import (
    capture_text,
    checked_words,
    ledger_rows,
    maker_rows,
    member_rows,
    op_trace_text,
    request_rows,
    verdict,
    words,
)
from stepscope.report.lines import NO_BREAK, SEPARATOR, Piece, labelled, paint, wrap, wrap_items
from stepscope.report.memory import room_words
from stepscope.report.page import (
    call_rows,
    input_rows,
    limit_rows,
    link_rows,
    op_rows,
    price_rows,
    traced_rows,
    turn_rows,
)
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.report import Report
    from stepscope.report.lines import Line
    from stepscope.tables.findings import Finding

MIN_WIDTH = 60
TOP_FINDINGS = 5
TOP_INFOS = 6
TOP_DIAGNOSTICS = 3
TOP_OPS = 3
SMALL_SHARE = 0.005
"""Components below half a percent are omitted from the one-line breakdown."""
HEAD = 12
"""Column of the text after ``stepscope`` and ``the step``."""
TAIL = 10
"""Column of the text after ``checked`` and ``report``."""
BODY = 18
"""Column of a finding's text."""
GAP = 2
"""Minimum number of blanks between a title and the place to its right."""


def render(
    report: Report,
    *,
    color: bool = False,
    width: int = 120,
    session_path: str = "",
    html_path: str = "",
    verbose: bool = False,
    price: float = 0.0,
) -> str:
    """The report as lines of text that end in a newline.

    Args:
        report: the report to show.
        color: use ANSI colours.
        width: columns of the terminal; at least 60 are used.
        session_path: path of the session, for the command that opens it again.
        html_path: path of the page.
        verbose: with every reason why detectors could not decide.
        price: of an hour of the machine, in any currency; 0: nothing is said of it.
    """
    width = max(width, MIN_WIDTH)
    if (why := verdict.nothing_to_show(report)) and not verbose:
        lines = [
            *_first(report, width - HEAD, cost=False),
            *labelled("why", HEAD, wrap(f"{why}{SEPARATOR}more: -v", width - HEAD)),
        ]
        lines += labelled("measured", HEAD, wrap_items(words.measured_items(report), width - HEAD))
        lines += [*_links(report, width), *_paths(session_path, html_path, width)]
        return "".join(paint(line, color=color) + "\n" for line in lines)
    cost = labelled("cost", HEAD, wrap_items(price_rows.lines(report, price), width - HEAD))
    lines = [*_header(report, width), *cost, (), *_findings(report, width), *_checked(report, width, verbose=verbose)]
    lines += [*_captured(report, width), *_traced(report, width), *_ops(report, width), *_limits(report, width)]
    lines += [*_source(report, width), *_diagnostics(report, width), *_slowest(report, session_path, width)]
    lines += [*_links(report, width), *_paths(session_path, html_path, width)]
    return "".join(paint(line, color=color) + "\n" for line in lines)


def _header(report: Report, width: int) -> list[Line]:
    room = width - HEAD
    summary, times = report.session, report.session.step_times
    if words.is_imported(report):
        return _imported(report, room)
    if not summary.steps:
        measured = wrap_items(words.measured_items(report), room)
        return [
            *_first(report, room),
            *labelled("the job", HEAD, wrap_items(ledger_rows.line(report), room)),
            *labelled("unexplained", HEAD, wrap(verdict.unexplained_text(report), room)),
            *labelled("measured", HEAD, measured or ["nothing: the job was too short, or no sampler ran"]),
            *_stages(report, room),
            *labelled("memory", HEAD, wrap_items(room_words.items(report.memory_room), room)),
            *_wrapped("requests", request_rows.lines(report), room),
            *_wrapped("calls", call_rows.lines(report.system_calls), room),
            *_members(report, room),
        ]
    items = [verdict.unread_text(report), words.printable(summary.member), words.steps_text(summary)]
    items.append(words.throughput_text(summary))
    if times is not None:
        mean, p95 = words.time_pair(times.mean_ns, times.p95_ns)
        items.append(f"step {mean} (p95 {p95})")
    items += [words.backend_text(summary), verdict.gpu_text(report), verdict.exit_text(summary)]
    items.append(words.overhead_text(report.overhead))
    return [
        *labelled("stepscope", HEAD, wrap_items(filter(None, items), room)),
        *_wrapped("makers", maker_rows.lines(summary), room),
        *labelled("the step", HEAD, wrap_items([*_anatomy(report), *filter(None, [verdict.steps_note(report)])], room)),
        *labelled("the job", HEAD, wrap_items(ledger_rows.line(report), room)),
        *labelled("turns", HEAD, wrap_items(turn_rows.line(report), room)),
        *labelled("unexplained", HEAD, wrap(verdict.unexplained_text(report), room)),
        *labelled("machine", HEAD, wrap(verdict.machine_text(report), room)),
        *_stages(report, room),
        *_wrapped("input", input_rows.head(report), room),
        *labelled("memory", HEAD, wrap_items(room_words.items(report.memory_room), room)),
        *_wrapped("requests", request_rows.lines(report), room),
        *_wrapped("calls", call_rows.lines(report.system_calls), room),
        *_members(report, room),
    ]


def _first(report: Report, room: int, *, cost: bool = True) -> list[Line]:
    """The first line about a job without steps."""
    summary = report.session
    items = [verdict.unread_text(report), words.printable(summary.member), verdict.no_steps_text(report)]
    items += [words.framework_text(summary), format_ns(summary.wall_ns)]
    items.append(words.plural(summary.processes, "process") if summary.processes else "")
    items += [verdict.exit_text(summary), words.overhead_text(report.overhead, steps=0) if cost else ""]
    return labelled("stepscope", HEAD, wrap_items(filter(None, items), room))


def _imported(report: Report, room: int) -> list[Line]:
    """Header of a session that holds only another tool's recording."""
    said = [*op_trace_text.imported(report), *(traced_rows.lines(report.traced) if report.traced is not None else ())]
    stages = _stages(report, room) if any(stage.ratio is not None for stage in report.stages) else []
    ranks = _members(report, room) if report.cluster is not None else []
    return [*ranks, *(line for label, text in said for line in labelled(label, HEAD, wrap(text, room))), *stages]


def _members(report: Report, room: int) -> list[Line]:
    if report.cluster is not None:
        rows = [text for row in member_rows.rows(report.cluster) for text in wrap(row, room)]
        return labelled("members", HEAD, [*wrap_items(member_rows.head(report.cluster), room), *rows])
    return labelled("processes", HEAD, wrap_items(words.process_role_items(report.session), room))


def _stages(report: Report, room: int) -> list[Line]:
    """The pipeline stages with their shares, then those not measured and what would measure them."""
    if not report.stages:
        return []
    blind = words.blind_stages(report.stages)
    unseen = [_one_line(f"{words.BLIND}{', '.join(blind)}", room)] if blind else []
    return labelled("stages", HEAD, [*wrap_items(words.seen_stages(report.stages), room), *unseen])


def _wrapped(label: str, lines: Sequence[str], room: int, column: int = HEAD) -> list[Line]:
    """Lines of any length behind a label."""
    return labelled(label, column, [text for line in lines for text in wrap(line, room)])


def _below(label: str, lines: Sequence[str], width: int) -> list[Line]:
    """The same below the findings."""
    return _wrapped(label, lines, width - TAIL, TAIL)


def _anatomy(report: Report) -> list[str]:
    shares: dict[str, float] = {}
    for part in report.anatomy:
        shares[part.component] = shares.get(part.component, 0.0) + part.ratio
    shown = sorted((c for c in shares if shares[c] >= SMALL_SHARE), key=lambda c: -shares[c])
    items = [f"{words.component_of(report, c)} {100 * shares[c]:.0f} %" for c in shown]
    return items or ["no breakdown available"]


def _findings(report: Report, width: int) -> list[Line]:
    head, listed = verdict.machine(report), verdict.listed(report)
    found = [finding for finding in words.significant(report) if finding is not head]
    infos = [finding for finding in report.findings if finding.severity == "info" and finding not in listed]
    lines: list[Line] = []
    shown = found[:TOP_FINDINGS]
    shown += [f for f in found[TOP_FINDINGS:] if f.severity == "ask"]
    if not found:
        lines += _nothing(report, width)
    for number, finding in enumerate([*shown, *listed], 1):
        lines += _finding(number, finding, width)
    for finding in infos[:TOP_INFOS]:
        lines += _info(finding, width)
    counts = (len(found) - len(shown), "more"), (len(infos) - TOP_INFOS, "info")
    more = [f"+ {count} {word}" for count, word in counts if count > 0]
    if more:
        lines.append((Piece(SEPARATOR.join(more), "dim"),))
    return lines


def _info(finding: Finding, width: int) -> list[Line]:
    """A finding that only informs: its title, and its place."""
    code = Piece(f"{words.printable(finding.code)}  ".ljust(8), "label")
    place = f" ({words.place_text(finding.where[0], short=True)})" if finding.where else ""
    first, *rest = wrap(f"{words.printable(finding.title)}{place}", width - BODY)
    head = Piece("  "), Piece("info".ljust(8), "info"), code, Piece(first)
    return [head, *((Piece(" " * BODY), Piece(text)) for text in rest)]


def _nothing(report: Report, width: int) -> list[Line]:
    """The verdict without findings above info. Unexplained time stands in the head."""
    text = verdict.nothing_text(report)
    if verdict.unexplained_text(report):
        return [(Piece("no finding explains the time above", "label"),)]
    return [(Piece(line, "good" if text == verdict.NOTHING else "label"),) for line in wrap(text, width)]


def _finding(number: int, finding: Finding, width: int) -> list[Line]:
    room = width - BODY
    indent = Piece(" " * BODY)
    head = (
        Piece(f"{number} "),
        Piece(finding.severity.ljust(8), finding.severity),
        Piece(f"{words.printable(finding.code)}  ".ljust(8), "label"),
    )
    titles = wrap(words.printable(finding.title), room)
    lines: list[Line] = [(head if i == 0 else (indent,)) + (Piece(text),) for i, text in enumerate(titles)]
    if finding.where:
        place = words.place_text(finding.where[0], short=True)
        used = sum(cell_len(p.text) for p in lines[-1])
        gap = width - used - cell_len(place)
        if gap >= GAP:
            lines[-1] += (Piece(" " * gap), Piece(place, "place"))
        else:
            lines.append((indent, Piece("at "), Piece(_shorten(place, room - 3), "place")))
    cost = _cost(finding)
    if finding.remedies:
        cost += f"{SEPARATOR if cost else ''}remedy: {words.printable(finding.remedies[0].text)}"
    rule = f"(stepscope rule {words.printable(finding.code)})".replace(" ", NO_BREAK)
    lines += [(indent, Piece(text)) for text in wrap(f"{cost} {rule}", room)]
    proof = next((r.what_if for r in finding.remedies if r.what_if is not None), None)
    if proof is not None:
        said = f"{words.proof_word(finding)}: {words.printable(proof)}"
        lines += [(indent, Piece(text)) for text in wrap(said, room)]
    edit = next((r for r in finding.remedies if r.edit is not None), None)
    if edit is not None and edit.edit is not None:
        said = "" if edit is finding.remedies[0] else f"{words.printable(edit.text)}: "
        shown = words.printable(edit.edit).replace(" ", NO_BREAK)
        lines += [(indent, Piece(text)) for text in wrap(f"edit: {said}{shown}", room)]
    return lines


def _cost(finding: Finding) -> str:
    """The cost; "" for a general finding without one, whose title says its share."""
    if verdict.is_general(finding) and finding.cost.basis == "unknown":
        return ""
    return words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))


def _shorten(place: str, room: int) -> str:
    """Drop leading folders of a path that does not fit; its end is more informative."""
    while cell_len(place) > room:
        _, slash, rest = place.lstrip("\u2026/").partition("/")
        place = f"\u2026/{rest}" if slash else wrap(place.replace(" ", NO_BREAK), room)[0]
    return place


def _checked(report: Report, width: int, *, verbose: bool) -> list[Line]:
    room = width - TAIL
    texts = [_one_line(checked_words.checked_short(report.checked), room)]
    if verbose:
        texts = [line for text in checked_words.checked_long(report.checked) for line in wrap(text, room)]
    return labelled("checked", TAIL, texts)


def _one_line(text: str, room: int) -> str:
    """The start of a text that does not fit into one line."""
    first, *more = wrap(text, room)
    return f"{wrap(text, room - 2)[0]} \u2026" if more else first


def _captured(report: Report, width: int) -> list[Line]:
    """What was captured, and the cost of it."""
    texts = [capture_text.line(capture) for capture in report.overhead.captures if capture.kind == "ops"]
    return labelled("captured", TAIL, [line for text in texts[:TOP_OPS] for line in wrap(text, width - TAIL)])


def _traced(report: Report, width: int) -> list[Line]:
    """Where the traced steps of a measured job spend their time; for an imported file the header shows it."""
    if report.traced is None or words.is_imported(report):
        return []
    return _below("traced", [text for _, text in traced_rows.lines(report.traced)], width)


def _limits(report: Report, width: int) -> list[Line]:
    """Whether the step's ops are as fast as they can be here, if they were run alone."""
    if report.limits is None:
        return []
    return _below("limits", [report.limits.text, *limit_rows.notes(report.limits)[1:]], width)


def _links(report: Report, width: int) -> list[Line]:
    return [
        *_below("links", link_rows.short(report.links), width),
        *_below("clocks", link_rows.clocks(report), width),
    ]


def _ops(report: Report, width: int) -> list[Line]:
    """Lines and layers that made the most expensive ops, if ops were traced."""
    if report.ops is None:
        return []
    return _below(
        "ops", [op_rows.summary(report.ops, words.analysed_file(report)), *op_rows.short(report.ops, TOP_OPS)], width
    )


def _source(report: Report, width: int) -> list[Line]:
    """One line for static findings without a measured cost: they are not findings of this run."""
    items = words.source_items(report.source_check)
    if not items or report.source_check is None:
        return []
    command = words.printable(report.source_check.command).replace(" ", NO_BREAK)
    return labelled("source", TAIL, wrap(f"{SEPARATOR.join(items)}: {command}", width - TAIL))


def _diagnostics(report: Report, width: int) -> list[Line]:
    rows = words.merged_diagnostics(report.diagnostics)
    lines: list[Line] = []
    for code, text, count in rows[:TOP_DIAGNOSTICS]:
        times = f" ({count} times)" if count > 1 else ""
        lines += labelled("note", TAIL, wrap(f"{code} {text}{times}", width - TAIL))
    if len(rows) > TOP_DIAGNOSTICS:
        lines.append((Piece(" " * TAIL), Piece(f"+ {len(rows) - TOP_DIAGNOSTICS} more in the report", "dim")))
    return lines


def _slowest(report: Report, session_path: str, width: int) -> list[Line]:
    """The slowest outlier among the steps, and the command that shows it compared with the median step."""
    if not report.slow_steps:
        return []
    path = shlex.quote(words.printable(session_path)) if session_path else "SESSION"
    command = f"stepscope report {path} --step slowest".replace(" ", NO_BREAK)
    items = [words.printable(report.slow_steps[0].headline.partition(": ")[0]), command]
    return labelled("slowest", TAIL, wrap(SEPARATOR.join(items), width - TAIL))


def _paths(session_path: str, html_path: str, width: int) -> list[Line]:
    items = [words.printable(html_path)] if html_path else []
    if session_path:
        items.append(f"stepscope report {shlex.quote(words.printable(session_path))}")
    return labelled("report", TAIL, wrap_items(items, width - TAIL))
