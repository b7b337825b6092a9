"""Comments that silence a report: ``# stepscope: ignore[TFD001]`` or ``# noqa: TFD001`` on its line,
``ignore-file[...]`` anywhere.

A ``noqa`` without codes is other tools': it silences nothing here.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Container, Iterable

from msgspec import Struct

from stepscope.check.hits import Hit
from stepscope.check.source.source import Source

COMMENT = re.compile(r"#\s*stepscope:\s*(?P<kind>ignore-file|ignore)\b\s*(?:\[(?P<codes>[^\]]*)\])?")
"""Pattern of such a comment; ``codes``: the text between its brackets."""


NOQA = re.compile(r"#\s*noqa\s*:\s*(?P<codes>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)", re.IGNORECASE)
"""Pattern of a comment that several linters read."""


class Ignore(Struct, frozen=True):
    """A comment that silences codes; with no ``codes``, all of them."""

    line: int
    whole_file: bool
    codes: tuple[str, ...]
    noqa: bool = False

    @property
    def text(self) -> str:
        """The comment in its normal form, for messages."""
        if self.noqa:
            return f"noqa: {', '.join(self.codes)}"
        codes = f"[{', '.join(self.codes)}]" if self.codes else ""
        return f"stepscope: ignore{'-file' if self.whole_file else ''}{codes}"

    def covers(self, hit: Hit) -> bool:
        """Whether the comment silences a hit: it is on the hit's first or last line."""
        there = self.whole_file or self.line in (hit.span.line, hit.span.end_line)
        return there and (not self.codes or hit.code in self.codes)


def ignores(source: Source, rules: Container[str]) -> tuple[Ignore, ...]:
    """The comments of a file. Lookalikes inside strings do not count, nor does a ``noqa`` for other tools' codes."""
    if "stepscope:" not in source.text and not any(_named(match, rules) for match in NOQA.finditer(source.text)):
        return ()
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type != tokenize.COMMENT:
                continue
            noqa = NOQA.search(token.string)
            if noqa is not None and (codes := _named(noqa, rules)):
                found.append(Ignore(token.start[0], whole_file=False, codes=codes, noqa=True))
            if match := COMMENT.search(token.string):
                codes = tuple(c.strip().upper() for c in (match["codes"] or "").split(",") if c.strip())
                found.append(Ignore(token.start[0], match["kind"] == "ignore-file", codes))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return tuple(found)
    return tuple(found)


def _named(match: re.Match[str], rules: Container[str]) -> tuple[str, ...]:
    """The codes of rules that a ``noqa`` names."""
    return tuple(code for code in re.split(r"[,\s]+", match["codes"].upper()) if code in rules)


def split(hits: Iterable[Hit], comments: tuple[Ignore, ...]) -> tuple[tuple[Hit, ...], int, tuple[Ignore, ...]]:
    """The remaining hits, the number of silenced ones, and the comments that silence nothing."""
    kept = []
    silenced = 0
    used: set[Ignore] = set()
    for hit in hits:
        covering = [c for c in comments if c.covers(hit)]
        used.update(covering)
        silenced += bool(covering)
        if not covering:
            kept.append(hit)
    return tuple(kept), silenced, tuple(c for c in comments if c not in used)
