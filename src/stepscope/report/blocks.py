"""What the sections of a report are made of: texts, tables, bars, drawings.

``markdown`` and ``page.cards`` write them; the web page gets them as JSON, each with its kind as ``type``. A text is a
span, or several with blanks between them. Strings of a session are untrusted; who writes a block escapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.tables.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stepscope.report.marked import Html
    from stepscope.tables.findings import Finding


class Code(Struct, frozen=True, tag=str.lower):
    """Text as code."""

    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


class At(Struct, frozen=True, tag=str.lower):
    """A place in the code; None: nothing is written."""

    place: Place | None

    def __bool__(self) -> bool:
        return self.place is not None


class Key(Struct, frozen=True, tag=str.lower):
    """A label, and the class of its colour in bars and charts."""

    css: str
    label: str


class Outcome(Struct, frozen=True, tag=str.lower):
    """What became of a detector, in words; ``kind`` is the outcome's identifier."""

    kind: str
    text: str


class Share(Struct, frozen=True, tag=str.lower):
    """A share as a small bar; on the page alone."""

    ratio: float


class Stacked(Struct, frozen=True, tag=str.lower):
    """Texts one below the other."""

    texts: Sequence[str]

    def __bool__(self) -> bool:
        return any(self.texts)


Span = str | Code | At | Key | Outcome | Share | Stacked
Text = Span | tuple[Span, ...]


def spans(text: Text) -> tuple[Span, ...]:
    """The spans of a text that say something."""
    return tuple(filter(None, text if isinstance(text, tuple) else (text,)))


class Block(Struct, frozen=True, kw_only=True, tag=str.lower):
    """A part of a section. ``page``: it is for the page alone, Markdown leaves it out."""

    page: bool = False


class Paragraph(Block, frozen=True):
    """A text. ``css``: its class on the page."""

    text: Text
    css: str = ""


class Heading(Block, frozen=True):
    """The title of what follows within the section."""

    text: str


class Listed(Block, frozen=True):
    """A list of texts."""

    items: Sequence[Text]


class Facts(Block, frozen=True):
    """Names and values."""

    rows: Sequence[tuple[str, Text]]


class Fence(Block, frozen=True):
    """Lines of code."""

    language: str
    text: str


class Column(Struct, frozen=True):
    """A column of a table; figures are right-aligned."""

    title: str
    numeric: bool = False


class Table(Block, frozen=True):
    """A table; columns without any text are left out."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]

    def filled(self) -> tuple[list[Column], list[list[Text]]]:
        """Its columns with text, and their cells."""
        kept = [i for i in range(len(self.columns)) if any(spans(row[i]) for row in self.rows)]
        return [self.columns[i] for i in kept], [[row[i] for i in kept] for row in self.rows]


class Part(Struct, frozen=True):
    """A part of a bar; ``css``: the class of its colour."""

    css: str
    label: str
    ratio: float
    ns: float


class Bar(Block, frozen=True):
    """A step, a turn or a job as one bar of its parts, in their order; on the page alone.

    ``per``: what follows their times.
    """

    title: str
    parts: Sequence[Part]
    per: str = " per step"


class Drawing(Block, frozen=True):
    """Charts and the like, as cards; drawn when the page is written, on the page alone."""

    draw: Callable[[], Html]


class Found(Block, frozen=True):
    """A finding, its number in the report, and the known cost of lines (file, line) as a share of the time."""

    number: int
    finding: Finding
    evidence: Table
    heat: Mapping[tuple[str, int], float]


class Grid(Block, frozen=True):
    """Blocks next to each other on a wide page, each a card; below each other elsewhere."""

    cells: Sequence[Sequence[Block]]


def columns(titles: str) -> list[Column]:
    """The columns of ``Task | Calls: | Where``: a colon stands behind the title of figures."""
    return [Column(title.removesuffix(":"), title.endswith(":")) for title in titles.split(" | ")]


def coded(rows: Iterable[Sequence[str]], *places: int) -> list[list[Text]]:
    """Rows of texts whose cells at ``places`` are code."""
    return [[Code(text) if i in places else text for i, text in enumerate(row)] for row in rows]
