"""What the input could reach, as rows shared by terminal, Markdown and page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stepscope.report import words
from stepscope.report.marked import Html
from stepscope.report.page import tables
from stepscope.tables.units import format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from stepscope.model.report.input_bound import InputBound
    from stepscope.model.report.input_tree import InputTree
    from stepscope.model.report.report import Report

HEAD = ("stage", "where", "elements a batch", "CPU a batch", "waits", "threads", "memory a batch")
NUMERIC = frozenset(HEAD[2:5] + HEAD[6:])
TREE = ("stage", "where", "own time a batch", "waits", "parallelism", "elements", "ready")
TREE_NUMERIC = range(2, 7)
WAITS = {"input": "for its input", "consumer": "for its consumer", "other": "CPU, lock or Python"}
"""For whom a stage waits, in words."""
EDITS = ("edit", "where", "predicted", "if", "try it")
BINDING = {"step": "the step", "disk": "the disk", "network": "the link"}
MIN_WAIT = 0.05
"""Share of the steps that wait for input from which the head of a report says what the input could reach."""
MIN_GAIN = 1.1
"""Rate at best over that of now, from which the terminal shows it."""


class StageText(NamedTuple):
    """One stage, as text; columns as ``HEAD``."""

    stage: str
    where: str
    elements: str
    cpu: str
    waits: str
    threads: str
    memory: str


def short(bound: InputBound | None) -> list[str]:
    """Texts for the terminal; none where neither an edit that is known nor more cores gain anything."""
    if bound is None:
        return []
    if not bound.edits or bound.best_per_s < MIN_GAIN * bound.now_per_s:
        return [words.printable(bound.text), by_cores(bound)] if _gains_by_cores(bound) else []
    said = [words.printable(bound.text), *([by_cores(bound)] if bound.by_cores else [])]
    if bound.diff:
        said.append("the edit as a diff: report.json, input_bound.diff; report.html, Input")
    elif bound.no_diff:
        said.append(f"no diff: {words.printable(bound.no_diff)}")
    if bound.what_if is not None:
        said.append(f"prove it: {words.printable(bound.what_if)}")
    return said


def _gains_by_cores(bound: InputBound) -> bool:
    return bool(bound.by_cores) and bound.by_cores[-1].now_per_s >= MIN_GAIN * bound.now_per_s


def by_cores(bound: InputBound) -> str:
    """The rates on other numbers of cores, in a sentence."""
    edited = any(one.best_per_s > MIN_GAIN * one.now_per_s for one in bound.by_cores)
    each = [
        f"{one.cores}: {format_rate(one.now_per_s)}" + (f", {format_rate(one.best_per_s)}" if edited else "")
        for one in bound.by_cores
    ]
    what = " (now, at best)" if edited else ""
    last = bound.by_cores[-1]
    end = "" if last.binds == "cores" else f"; more cores bring nothing: {BINDING.get(last.binds, 'one thread')} binds"
    return f"{bound.unit}/s by cores{what}: {'; '.join(each)}{end}"


def head(report: Report) -> list[str]:
    """The same of a report; nothing where the steps hardly wait for input."""
    wait = sum(part.ratio for part in report.anatomy if part.component == "input-wait")
    return short(report.input_bound) if wait >= MIN_WAIT else []


def rows(bound: InputBound) -> list[StageText]:
    """The stages, from the consumer to the sources."""
    return [
        StageText(
            words.printable(stage.name),
            f"{words.printable(stage.file)}:{stage.line}" if stage.file else "",
            format_rate(stage.elements),
            format_ns(stage.cpu_ns),
            format_ns(stage.blocked_ns) if stage.blocked_ns else "",
            "several" if stage.parallel else "one",
            format_bytes(stage.bytes),
        )
        for stage in bound.stages
    ]


def tree_rows(tree: InputTree) -> list[tuple[str, ...]]:
    """The tree, a row for each stage, deeper ones indented; columns as ``TREE``."""
    return [
        (
            "\u2007" * 2 * stage.depth
            + words.printable(f"{stage.name} {stage.function}".rstrip())
            + (" (mend this first)" if stage.mend else ""),
            f"{words.printable(stage.place.file)}:{stage.place.line}" if stage.place is not None else "",
            format_ns(stage.batch_ns),
            f"{format_ns(stage.wait_ns)} {WAITS.get(stage.waits_for, '')}".rstrip() if stage.wait_ns else "",
            format_rate(stage.parallelism) + (" (AUTOTUNE)" if stage.asked_parallel < 0 else ""),
            format_rate(stage.elements),
            format_rate(stage.buffered) if stage.buffered else "",
        )
        for stage in tree.stages
    ]


def edits(bound: InputBound) -> list[tuple[str, str, str, str, str]]:
    """The edits in their order; columns as ``EDITS``."""
    return [
        (
            words.printable(edit.text),
            f"{words.printable(edit.file)}:{edit.line}" if edit.file else "",
            f"{format_rate(edit.per_s)} {bound.unit}/s",
            words.printable(edit.note.removeprefix("if ")),
            words.printable(edit.what_if or ""),
        )
        for edit in bound.edits
    ]


def page(report: Report) -> Html:
    """The section of the page; empty if no input was seen."""
    said = _tree(report.input_tree) + _bound(report.input_bound)
    return Html('<div class="card">{}</div>').format(said) if said else Html()


def _tree(tree: InputTree | None) -> Html:
    if tree is None:
        return Html()
    said = Html("<p>{}.</p>").format(tree.text)
    if not tree.stages:
        return said
    rows = [tables.cells(row, numeric=TREE_NUMERIC) for row in tree_rows(tree)]
    return said + tables.table([title.capitalize() for title in TREE], rows, numeric=TREE_NUMERIC)


def _bound(bound: InputBound | None) -> Html:
    if bound is None:
        return Html()
    said = Html("<p>{}.</p>").format(bound.text)
    if bound.edits:
        said += tables.named_table(EDITS, edits(bound), numeric=(), coded=("where", "try it"))
    if bound.by_cores:
        said += Html("<p>{}.</p>").format(by_cores(bound))
    if bound.diff:
        said += Html("<pre><code>{}</code></pre>").format(Html("\n").join(bound.diff.split("\n")))
    if bound.what_if is not None and len(bound.edits) > 1:
        said += Html("<p>Prove it: <code>{}</code></p>").format(bound.what_if)
    if bound.no_diff:
        said += Html("<p>Not in a diff: {}.</p>").format(bound.no_diff)
    return said + tables.named_table(HEAD, rows(bound), NUMERIC)
