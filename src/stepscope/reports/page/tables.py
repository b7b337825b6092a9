"""Tables and lists of the page, as markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports import words
from stepscope.reports.page.svg import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.model.report.finding import Place


def table(head: Sequence[str], rows: Iterable[str], *, numeric: Sequence[int] = ()) -> str:
    """A table. ``head`` is text, ``rows`` are the markup of their cells; columns ``numeric`` are right-aligned."""
    cells = "".join(
        f'<th scope="col"{" class=n" if i in numeric else ""}>{escape(name)}</th>' for i, name in enumerate(head)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def code(text: str) -> str:
    """Text as code; empty for no text."""
    return f"<code>{escape(text)}</code>" if text else ""


def place(where: Place | None, *, before: str = "") -> str:
    """A place in the code, after ``before``; empty for none."""
    return f'{before}<code class="where">{escape(words.place_text(where))}</code>' if where is not None else ""


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A list of names and values; both already are markup."""
    return f'<dl class="pairs">{"".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)}</dl>'
