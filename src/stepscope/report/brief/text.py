"""What a terminal shows without ``-v``: the verdict, the step, three findings, what was not seen, the report's path.

At most ``MOST_LINES`` lines at any width: what does not fit into its line ends in an ellipsis.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.cells import cell_len

from stepscope.report import op_trace_text, verdict, words
from stepscope.report.brief import not_known, titles, verdict_words
from stepscope.report.document import members
from stepscope.report.document import price as price_lines
from stepscope.report.lines import NO_BREAK, SEPARATOR, Piece, labelled, paint, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.report import Report
    from stepscope.report.lines import Line
    from stepscope.tables.findings import Finding

MOST_LINES = 12
MOST_FINDINGS = 3
LINES_OF_FINDING = 2
MOST_VERDICT = 3
MOST_UNKNOWN = 2
MIN_PART = 24
"""Room below which no part of an item is shown."""
MIN_WIDTH = 60
COLUMN = 12
BODY = 18
"""Column of a finding's text."""
SMALL_SHARE = 0.015
"""Smallest component that is named: 2 %."""


def render(
    report: Report,
    *,
    color: bool = False,
    width: int = 120,
    session_path: str = "",
    html_path: str = "",
    price: float = 0.0,
) -> str:
    """The report in at most twelve lines that end in a newline; arguments as of ``report.text.render``."""
    width = max(width, MIN_WIDTH)
    room = width - COLUMN
    head = labelled("stepscope", COLUMN, _at_most(MOST_VERDICT, verdict_words.text(report), room))
    if report.cluster is not None:
        head += labelled("members", COLUMN, [_fitting(members.head(report.cluster), room)])
    if not verdict.nothing_to_show(report):
        head += labelled(*_measured(report, room))
    head += labelled("cost", COLUMN, [text for text in [_fitting(price_lines.lines(report, price), room)] if text])
    least = 0 if verdict.nothing_to_show(report) else 1
    shown = findings(report)
    while True:
        paths = _paths(len(report.findings) - len(shown), session_path, html_path, room)
        if not shown or len(head) + LINES_OF_FINDING * len(shown) + least + len(paths) <= MOST_LINES:
            break
        shown.pop()
    below = [line for number, finding in enumerate(shown, 1) for line in _finding(number, finding, width)]
    left = MOST_LINES - len(head) - len(below) - len(paths)
    unknown = labelled("not known", COLUMN, _unknown(report, room, min(MOST_UNKNOWN, left))) if least else []
    blank = [()] if below and left > len(unknown) else []
    last = labelled("report", COLUMN, paths)
    return "".join(paint(line, color=color) + "\n" for line in [*head, *blank, *below, *unknown, *last])


def findings(report: Report) -> list[Finding]:
    """The findings that are shown: those above info, then general ones that advise."""
    return [*words.significant(report), *verdict.listed(report)][:MOST_FINDINGS]


def _measured(report: Report, room: int) -> tuple[str, int, list[str]]:
    """Label and text of the line about the step; of a job without steps, about what was measured."""
    summary, times = report.session, report.session.step_times
    if words.is_imported(report):
        return "imported", COLUMN, [_fitting([words.printable(op_trace_text.shown(report))], room)]
    if not summary.steps:
        items = [words.printable(summary.member), words.framework_text(summary), verdict.traced_text(report)]
        items += words.measured_items(report)
        return "the job", COLUMN, [_fitting([*items, words.overhead_text(report.overhead, steps=0)], room)]
    items = [words.printable(summary.member)]
    if times is not None:
        mean, p95 = words.time_pair(times.mean_ns, times.p95_ns)
        items.append(f"{mean} (p95 {p95})")
    items += [words.steps_text(summary), words.throughput_text(summary)]
    ratio = verdict.steps_ratio(report)
    few = f"{words.percent(ratio)} % of the run" if ratio is not None and verdict.steps_note(report) else ""
    overhead = f"overhead {words.percent(report.overhead.ratio)} %"
    shown = [*items, few, verdict.gpu_text(report), overhead, *named_parts(report)]
    return "the step", COLUMN, [_fitting(shown, room, whole=True)]


def parts(report: Report) -> dict[str, float]:
    """Shares of the step by component, the largest first."""
    shares: dict[str, float] = {}
    for part in report.anatomy:
        shares[part.component] = shares.get(part.component, 0.0) + part.ratio
    return dict(sorted(((name, share) for name, share in shares.items() if share >= SMALL_SHARE), key=lambda x: -x[1]))


def named_parts(report: Report) -> list[str]:
    """``parts`` in words: ``input wait 61 %``."""
    return [f"{words.component_of(report, name)} {100 * share:.0f} %" for name, share in parts(report).items()]


def _finding(number: int, finding: Finding, width: int) -> list[Line]:
    room = width - BODY
    head = (
        Piece(f"{number} "),
        Piece(finding.severity.ljust(8), finding.severity),
        Piece(f"{words.printable(finding.code)}  ".ljust(8), "label"),
    )
    first, second = titles.title(finding, room), _fitting([cost(finding), advice(finding)], room)
    return [(*head, Piece(first)), *([(Piece(" " * BODY), Piece(second))] if second else [])]


def cost(finding: Finding) -> str:
    """``83 % (76-86) of the step``; "" of a general finding, whose title says its share."""
    if verdict.is_general(finding) and finding.cost.basis == "unknown":
        return ""
    said = words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))
    return said.partition(";")[0].removeprefix("costs ")


def advice(finding: Finding) -> str:
    """What to do: the first remedy; of a suspicion, the command that decides it."""
    proof = proof_of(finding)
    if finding.severity == "ask" and proof:
        return f"{words.proof_word(finding)}: {proof}"
    return words.printable(finding.remedies[0].text) if finding.remedies else ""


def proof_of(finding: Finding) -> str:
    """The command that proves the first remedy that can be tried; "" without."""
    return next((words.printable(r.what_if) for r in finding.remedies if r.what_if is not None), "")


def _unknown(report: Report, room: int, most: int) -> list[str]:
    """What the run could not see, in at most so many lines."""
    return _at_most(most, SEPARATOR.join(not_known.items(report)) or "nothing: every check could decide", room)


def _paths(more: int, session_path: str, html_path: str, room: int) -> list[str]:
    """The page, and the command that shows everything: on one line, or a line each."""
    left = f"{more} more: " if more > 0 else ""
    items = [words.printable(html_path)] if html_path else []
    if session_path:
        items.append(f"{left}stepscope report {shlex.quote(words.printable(session_path))} -v")
    joined = SEPARATOR.join(items)
    return [joined] if cell_len(joined) <= room else [titles.cut(item, room) for item in items]


def _fitting(items: Iterable[str], room: int, *, whole: bool = False) -> str:
    """Items joined by middle dots: as many as fit, and of the next what fits, unless ``whole`` items are wanted."""
    line = ""
    for item in filter(None, items):
        before = f"{line}{SEPARATOR}" if line else ""
        left = room - cell_len(before)
        if cell_len(item) > left:
            return line if line and (whole or left < MIN_PART) else before + titles.statement(item, left)
        line = before + item
    return line


def _at_most(count: int, text: str, room: int) -> list[str]:
    """So many lines of a text; the last ends in an ellipsis if there is more."""
    lines = wrap(text.replace(" %", f"{NO_BREAK}%"), room)
    if len(lines) > count:
        lines = [*lines[: count - 1], titles.cut(" ".join(lines[count - 1 :]), room)]
    return lines or [""]
