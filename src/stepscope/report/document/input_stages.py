"""The input: its stages, and what it could reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.blocks import Code, Fence, Paragraph, Table, coded, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from stepscope.model.report.input_bound import InputBound
    from stepscope.model.report.input_tree import InputTree

HEAD = columns("Stage | Where | Elements a batch: | CPU a batch: | Waits: | Threads | Memory a batch:")
TREE = columns("Stage | Where | Own time a batch: | Waits: | Parallelism: | Elements: | Ready:")
WAITS = {"input": "for its input", "consumer": "for its consumer", "other": "CPU, lock or Python"}
"""For whom a stage waits, in words."""
EDITS = columns("Edit | Where | Predicted | If | Try it")
BINDING = {"step": "the step", "disk": "the disk", "network": "the link"}
MIN_WAIT = 0.05
"""Share of the steps that wait for input from which the head of a report says what the input could reach."""
MIN_GAIN = 1.1
"""Rate at best over that of now, from which the terminal shows it."""


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


def rows(bound: InputBound) -> list[tuple[str, ...]]:
    """The stages, from the consumer to the sources."""
    return [
        (
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


def _lines(asked: Asked) -> Said:
    wait = sum(part.ratio for part in asked.report.anatomy if part.component == "input-wait")
    if asked.report.session.steps and wait >= MIN_WAIT:
        yield Lines(label="input", texts=short(asked.report.input_bound), where=Where.HEAD)


def _blocks(asked: Asked) -> Blocks:
    tree, bound = asked.report.input_tree, asked.report.input_bound
    if tree is not None:
        yield Paragraph(f"{tree.text}.", page=True)
        yield Table(TREE, coded(tree_rows(tree), 1), page=True)
    if bound is None:
        return
    little = not short(bound)
    yield Paragraph(f"{bound.text}.", page=little)
    yield Table(EDITS, coded(edits(bound), 1, 4), page=little)
    if bound.by_cores:
        yield Paragraph(f"{by_cores(bound)}.", page=little)
    if bound.diff:
        yield Fence("diff", bound.diff.removesuffix("\n"), page=little)
    if bound.what_if is not None and len(bound.edits) > 1:
        yield Paragraph(("Prove it:", Code(bound.what_if)), page=little)
    if bound.no_diff:
        yield Paragraph(f"Not in a diff: {bound.no_diff}.", page=little)
    yield Table(HEAD, coded(rows(bound), 1), page=True)


SECTION = Section(key="input", title="Input", lines=_lines, blocks=_blocks)
