"""The blocks of a section as cards of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import blocks
from stepscope.report.marked import Html, el
from stepscope.report.page import bars, tables
from stepscope.report.page.finding_card import finding_card

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def cards(shown: Iterable[blocks.Block], sources: Mapping[str, str]) -> Html:
    """Blocks in cards: a heading begins the next one; drawings and findings are cards themselves."""
    found: list[Html] = []
    card: list[Html] = []
    for block in shown:
        alone = _alone(block, sources)
        if alone is not None or isinstance(block, blocks.Heading):
            found.append(_card(card))
            card = []
        card += [_block(block)] if alone is None else []
        found += [alone] if alone is not None else []
    return Html().join([*found, _card(card)])


def plain(shown: Iterable[blocks.Block]) -> Html:
    """Blocks without a card round them."""
    return Html().join(map(_block, shown))


def _card(parts: Iterable[Html]) -> Html:
    inside = Html().join(parts)
    return Html('<div class="card">{}</div>').format(inside) if inside else Html()


def _alone(block: blocks.Block, sources: Mapping[str, str]) -> Html | None:
    """A block that is a card, or several; else None."""
    if isinstance(block, blocks.Drawing):
        return block.draw()
    if isinstance(block, blocks.Found):
        return finding_card(block, _table(block.evidence), sources)
    if not isinstance(block, blocks.Grid):
        return None
    cells = [*filter(None, (cards(cell, sources) for cell in block.cells))]
    grid = Html('<div class="grid charts top">{}</div>') if len(cells) > 1 else Html("{}")
    return grid.format(Html().join(cells))


def _block(block: blocks.Block) -> Html:
    shown = Html()
    if isinstance(block, blocks.Paragraph):
        shown = el("p", {"class": block.css or None}, _text(block.text))
    elif isinstance(block, blocks.Heading):
        shown = Html("<h3>{}</h3>").format(block.text)
    elif isinstance(block, blocks.Listed):
        items = Html().join(Html("<li>{}</li>").format(_text(item)) for item in block.items)
        shown = Html("<ul>{}</ul>").format(items) if items else Html()
    elif isinstance(block, blocks.Facts):
        shown = tables.facts((name, _text(value)) for name, value in block.rows)
    elif isinstance(block, blocks.Fence):
        shown = Html("<pre><code>{}</code></pre>").format(Html("\n").join(block.text.split("\n")))
    elif isinstance(block, blocks.Table):
        shown = _table(block)
    elif isinstance(block, blocks.Bar):
        shown = bars.step(block)
    return shown


def _table(block: blocks.Table) -> Html:
    columns, rows = block.filled()
    body = (Html().join(map(_cell, range(len(row)), columns, row)) for row in rows)
    numeric = [i for i, column in enumerate(columns) if column.numeric]
    return tables.table([column.title for column in columns], body, numeric=numeric) if rows else Html()


def _cell(number: int, column: blocks.Column, text: blocks.Text) -> Html:
    """A cell; the first of a row is its head."""
    css = "n" if column.numeric else None
    css = "key" if isinstance(text, blocks.Key) else "b" if isinstance(text, blocks.Share) else css
    return el("td" if number else "th", {"scope": None if number else "row", "class": css}, _text(text))


def _text(text: blocks.Text) -> Html:
    return Html(" ").join(map(_span, blocks.spans(text)))


def _span(span: blocks.Span) -> Html:
    shown = Html()
    if isinstance(span, blocks.Code):
        shown = tables.code(span.text)
    elif isinstance(span, blocks.At):
        shown = tables.place(span.place)
    elif isinstance(span, blocks.Key):
        shown = Html("{}{}").format(bars.swatch(span.css), span.label)
    elif isinstance(span, blocks.Outcome):
        shown = Html('<span class="outcome o-{}">{}</span>').format(span.kind, span.text)
    elif isinstance(span, blocks.Share):
        shown = bars.share_bar(span.ratio)
    else:
        shown = Html("<br>").join(span.texts if isinstance(span, blocks.Stacked) else (span,))
    return shown
