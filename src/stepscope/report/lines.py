"""Lines of styled text for a terminal: breaking, joining and labelling them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEPARATOR = " \u00b7 "
NO_BREAK = "\u00a0"
STYLES = {
    "high": "1;31",
    "medium": "1;33",
    "low": "36",
    "ask": "36",
    "info": "2",
    "error": "1;31",
    "warning": "1;33",
    "label": "1",
    "good": "32",
    "dim": "2",
    "place": "4",
    "": "",
}
"""SGR parameters (ECMA-48) of each style; every severity is one."""


class Piece(Struct, frozen=True):
    """A piece of one line with one style."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]


def paint(line: Line, *, color: bool) -> str:
    """A line as it is printed, with ANSI colours or without."""
    if not color:
        return "".join(p.text for p in line).rstrip()
    return "".join(f"\x1b[{STYLES[p.style]}m{p.text}\x1b[0m" if p.style else p.text for p in line)


def wrap(text: str, width: int) -> list[str]:
    """Break ``text`` at blanks into lines of at most ``width`` cells; a longer word is split.

    No-break spaces keep a command together and are printed as blanks.
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        rest = word
        joined = f"{line} {rest}" if line else rest
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        while cell_len(rest) > width:
            part = set_cell_size(rest, width).rstrip()
            lines.append(part)
            rest = rest[len(part) :]
        line = rest
    return [text.replace(NO_BREAK, " ") for text in ([*lines, line] if line else lines)]


def wrap_items(items: Iterable[str], width: int) -> list[str]:
    """Join items by middle dots; break between items if possible, else inside them."""
    lines: list[str] = []
    line = ""
    for item in items:
        joined = f"{line}{SEPARATOR}{item}" if line else item
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = wrap(item, width) or [""]
        lines.extend(full)
    return [*lines, line] if line else lines


def labelled(label: str, column: int, texts: Sequence[str], style: str = "") -> list[Line]:
    """Texts below each other from a column on, with a label before the first."""
    first = Piece(label.ljust(column), "label" if label else "")
    rest = Piece(" " * column)
    return [(rest if i else first, Piece(text, style)) for i, text in enumerate(texts)]
