"""The report as Markdown, for issues and chat: tables, places in the code, evidence, no charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import blocks, verdict, words
from stepscope.report.document.sections import SECTIONS
from stepscope.report.marked import Md, block, code, listed, table
from stepscope.report.memory import room_words
from stepscope.report.page.excerpt import excerpt
from stepscope.report.section import Asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepscope.model.report.report import Report

DOT = Md(" \u00b7 ")


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> Md:
    """The report as Markdown (CommonMark with tables). ``sources``: path to text, for excerpts of the code."""
    asked = Asked(report=report, sources=sources or {})
    said = ((one.title, _joined(one.blocks(asked), asked.sources)) for one in SECTIONS)
    parts = [Md("### {}\n\n{}").format(title, text) for title, text in said if text]
    return Md("\n\n").join([_head(report), *parts]) + Md("\n")


def _head(report: Report) -> Md:
    summary = report.session
    title = Md("## stepscope: {}").format(code(words.subject(report)))
    if words.is_imported(report):
        return title
    items = [*verdict.head_items(report), verdict.gpu_text(report)]
    items += [words.framework_text(summary), verdict.exit_text(summary)]
    items += words.process_role_items(summary)
    items += [Md("memory: {}").format(text) for text in room_words.items(report.memory_room)[:1]]
    items += room_words.items(report.memory_room)[1:]
    items += words.inference_items(summary)
    items += [words.overhead_text(report.overhead, steps=summary.steps), verdict.steps_note(report)]
    missing = verdict.unexplained_text(report)
    unexplained = Md("\n\nNot explained: {}.").format(missing) if missing else Md()
    return title + Md("\n\n") + DOT.join(filter(None, items)) + unexplained


def _joined(shown: Iterable[blocks.Block], sources: Mapping[str, str]) -> Md:
    return Md("\n\n").join(filter(None, (_block(one, sources) for one in shown if not one.page)))


def _block(one: blocks.Block, sources: Mapping[str, str]) -> Md:
    """A block; what is drawn has no text."""
    shown = Md()
    if isinstance(one, blocks.Paragraph):
        shown = _text(one.text)
    elif isinstance(one, blocks.Heading):
        shown = Md("#### {}").format(one.text)
    elif isinstance(one, blocks.Listed):
        shown = listed(map(_text, one.items))
    elif isinstance(one, blocks.Facts):
        shown = listed(Md("{}: {}").format(name, _text(value)) for name, value in one.rows)
    elif isinstance(one, blocks.Fence):
        shown = block(one.language, one.text.split("\n"))
    elif isinstance(one, blocks.Table):
        shown = _table(one)
    elif isinstance(one, blocks.Found):
        shown = _finding(one, sources)
    elif isinstance(one, blocks.Grid):
        shown = Md("\n\n").join(filter(None, (_joined(cell, sources) for cell in one.cells)))
    return shown


def _table(one: blocks.Table) -> Md:
    columns, rows = one.filled()
    drawn = {i for row in rows for i, text in enumerate(row) if isinstance(text, blocks.Share)}
    head = [f" {column.title}" if column.numeric else column.title for column in columns]
    body = [[_text(text) for i, text in enumerate(row) if i not in drawn] for row in rows]
    return table([title for i, title in enumerate(head) if i not in drawn], body) if rows else Md()


def _text(text: blocks.Text) -> Md:
    return Md(" ").join(map(_span, blocks.spans(text)))


def _span(span: blocks.Span) -> Md:
    if isinstance(span, blocks.Code):
        return code(span.text)
    if isinstance(span, blocks.At):
        return code(words.place_text(span.place)) if span.place is not None else Md()
    if isinstance(span, blocks.Share):
        return Md()
    if isinstance(span, blocks.Stacked):
        return Md("; ").join(span.texts)
    return Md.escape(span if isinstance(span, str) else span.label if isinstance(span, blocks.Key) else span.text)


def _finding(found: blocks.Found, sources: Mapping[str, str]) -> Md:
    finding = found.finding
    cost = words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))
    text = [Md("#### {}. {}: {}").format(found.number, finding.severity, finding.title)]
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
        text.append(_table(found.evidence))
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
