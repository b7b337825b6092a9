"""Comments that silence a report: ``# stepscope: ignore[TFD001]`` on its line, ``ignore-file[...]`` anywhere."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable

from msgspec import Struct

from stepscope.check.hits import Hit
from stepscope.check.source.source import Source

COMMENT = re.compile(r"#\s*stepscope:\s*(?P<kind>ignore-file|ignore)\b\s*(?:\[(?P<codes>[^\]]*)\])?")
"""Pattern of such a comment; ``codes``: the text between its brackets."""


class Ignore(Struct, frozen=True):
    """A comment that silences codes; with no ``codes``, all of them."""

    line: int
    whole_file: bool
    codes: tuple[str, ...]

    def covers(self, hit: Hit) -> bool:
        """Whether the comment silences a hit: it is on the hit's first or last line."""
        there = self.whole_file or self.line in (hit.span.line, hit.span.end_line)
        return there and (not self.codes or hit.code in self.codes)


def ignores(source: Source) -> tuple[Ignore, ...]:
    """The comments of a file. Lookalikes inside strings do not count."""
    if "stepscope:" not in source.text:
        return ()
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            match = COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = tuple(c.strip().upper() for c in (match["codes"] or "").split(",") if c.strip())
                found.append(Ignore(token.start[0], match["kind"] == "ignore-file", codes))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return tuple(found)
    return tuple(found)


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
