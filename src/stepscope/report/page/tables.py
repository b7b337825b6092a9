"""Tables and lists of the page, as markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.marked import Html

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from stepscope.tables.place import Place


def table(head: Sequence[str], rows: Iterable[Html], *, numeric: Container[int] = ()) -> Html:
    """A table of rows of cells; columns ``numeric`` are right-aligned."""
    names = Html().join(
        (Html('<th scope="col" class=n>{}</th>') if i in numeric else Html('<th scope="col">{}</th>')).format(name)
        for i, name in enumerate(head)
    )
    body = Html().join(Html("<tr>{}</tr>").format(row) for row in rows)
    return Html('<div class="table"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>').format(
        names, body
    )


def cells(row: Iterable[str], *, numeric: Container[int] = (), first: int = 0) -> Html:
    """Cells of a row, the first of which is column ``first``."""
    return Html().join(
        (Html('<td class="n">{}</td>') if i in numeric else Html("<td>{}</td>")).format(text)
        for i, text in enumerate(row, first)
    )


def paragraphs(texts: Iterable[str]) -> Html:
    """Each text as a paragraph."""
    return Html().join(Html("<p>{}</p>").format(text) for text in texts)


def code(text: str) -> Html:
    """Text as code; empty for no text."""
    return Html("<code>{}</code>").format(text) if text else Html()


def place(where: Place | None) -> Html:
    """A place in the code; empty for none."""
    return Html('<code class="where">{}</code>').format(words.place_text(where)) if where is not None else Html()


def facts(rows: Iterable[tuple[str, str]]) -> Html:
    """A list of names and values."""
    return Html('<dl class="pairs">{}</dl>').format(
        Html().join(Html("<dt>{}</dt><dd>{}</dd>").format(name, value) for name, value in rows)
    )
