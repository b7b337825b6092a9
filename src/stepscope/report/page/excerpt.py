"""Lines of source around a place, found in the sources that travel with a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.place import Place

CONTEXT = 4
"""Lines shown before and after the lines of a place."""
MAX_MARKED = 16
"""Lines of a place that are shown at most."""
MAX_COLUMNS = 200
"""Columns of a line that are shown at most; what is cut ends in an ellipsis."""


class SourceLine(Struct, frozen=True, kw_only=True):
    """One line of source. ``marked``: it belongs to the place."""

    number: int
    text: str
    marked: bool


class Excerpt(Struct, frozen=True, kw_only=True):
    """Lines around a place; ``left_out`` marked lines at the end of a long place are not shown."""

    lines: tuple[SourceLine, ...]
    left_out: int = 0


def find_source(file: str, sources: Mapping[str, str]) -> str | None:
    """The text of ``file``, whose path may be relative while the keys of ``sources`` are absolute.

    A relative path that fits several sources gets none: the wrong code is worse than no code.
    """
    if file in sources:
        return sources[file]
    ending = "/" + file.removeprefix("./").lstrip("/")
    fits = [path for path in sources if path.endswith(ending)]
    return sources[fits[0]] if len(fits) == 1 else None


def excerpt(place: Place, sources: Mapping[str, str]) -> Excerpt | None:
    """The lines of ``place`` and four around them; None where the source or the line is not there."""
    text = find_source(place.file, sources)
    if text is None:
        return None
    lines = text.split("\n")
    first = place.line
    end = max(place.end_line or first, first)
    if not 1 <= first <= len(lines):
        return None
    shown_end = min(end, first + MAX_MARKED - 1)
    last = min(len(lines), shown_end + CONTEXT if shown_end == end else shown_end)
    chosen = tuple(
        SourceLine(number=n, text=_cut(lines[n - 1]), marked=first <= n <= end)
        for n in range(max(1, first - CONTEXT), last + 1)
    )
    while chosen and not chosen[-1].marked and not chosen[-1].text.strip():
        chosen = chosen[:-1]
    return Excerpt(lines=chosen, left_out=max(0, min(end, len(lines)) - shown_end))


def _cut(line: str) -> str:
    flat = line.rstrip().expandtabs(4)
    return flat if len(flat) <= MAX_COLUMNS else flat[: MAX_COLUMNS - 1] + "\u2026"
