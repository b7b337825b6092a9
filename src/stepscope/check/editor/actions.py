"""Code actions for a finding, as text edits: apply its fix, ignore it, apply all safe fixes."""

from __future__ import annotations

from msgspec import Struct

from stepscope.check.editor.check import Document, check, encoded
from stepscope.check.fixing import rounds
from stepscope.check.fixing.edits import CannotFixError, Edit, ParserLines, apply, replacement
from stepscope.check.fixing.fixer import Fixer, comments
from stepscope.check.hits import Hit
from stepscope.check.source import suppress
from stepscope.tables.errors import CheckError


class Offer(Struct, frozen=True, kw_only=True):
    """A code action; its edits apply to the document's text."""

    title: str
    edits: tuple[Edit, ...]
    hit: Hit | None = None
    preferred: bool = False
    """Whether an editor may apply it without asking."""


def offers(document: Document, first_line: int, last_line: int) -> list[Offer]:
    """Actions for findings on some lines (from 1): fixes first, then ignore comments."""
    touched = [h for h in document.hits if h.span.line <= last_line and first_line <= h.span.end_line]
    fixer = Fixer(document.text, document.tensorflow)
    found = []
    for hit in touched:
        if hit.fix is None:
            continue
        planned = fixer.plan(hit.fix)
        if planned.refused:
            continue
        safe = hit.fix.safety == "safe"
        title = hit.fix.title if safe else f"{hit.fix.title} (review: {hit.fix.behaviour})"
        found.append(Offer(title=f"stepscope: {title}", edits=planned.edits, hit=hit, preferred=safe))
    return found + [offer for hit in touched if (offer := _silence(document.text, hit)) is not None]


def fix_all(document: Document, open_texts: dict[str, str]) -> Offer | None:
    """All safe fixes of a document; None when there are none."""
    path = document.path

    def again(contents: rounds.Contents) -> rounds.Hits:
        text = rounds.content_of(path, contents[path]).text
        return {path: check(path, text, open_texts=open_texts).hits}

    try:
        outcome = rounds.fix(
            {path: document.hits}, lambda _: encoded(document.text), again, version=document.tensorflow
        )
        if path not in outcome.contents:
            return None
        new = rounds.content_of(path, outcome.contents[path]).text
    except (CannotFixError, CheckError):
        return None
    edits = replacement(document.text, 0, len(document.text), new)
    return Offer(title=f"stepscope: apply all safe fixes ({len(outcome.done)})", edits=edits)


def _silence(text: str, hit: Hit) -> Offer | None:
    """A comment that ignores a hit, at the end of its first line if possible, else of its last."""
    lines = ParserLines(text)
    for line in dict.fromkeys((hit.span.line, hit.span.end_line)):
        begin = lines.offset(line, 1)
        end = begin + len(text[begin : lines.after(begin)].rstrip("\r\n"))
        known = suppress.COMMENT.search(text, begin, end)
        if known is not None and known["codes"]:
            edit = Edit(known.end("codes"), known.end("codes"), f", {hit.code}")
        else:
            edit = Edit(end, end, f"  # stepscope: ignore[{hit.code}]")
        if _is_comment(text, edit):
            return Offer(title=f"stepscope: ignore {hit.code} on this line", edits=(edit,), hit=hit)
    return None


def _is_comment(text: str, edit: Edit) -> bool:
    """Whether inserted text would be a comment, not part of a string or after a backslash."""
    try:
        before, after = comments(text), comments(apply(text, [edit]))
    except CannotFixError:
        return False
    return after != before and sum(after.values()) >= sum(before.values())
