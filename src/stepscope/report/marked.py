"""Markup and Markdown of reports: whatever is put into them is escaped, unless it is of the same kind itself.

Texts of a session are untrusted: names, paths, messages of exceptions. ``Html("<td>{}</td>").format(text)``,
``Html("<br>").join(texts)`` and ``markup + text`` escape them, and so does ``Md``, in which none becomes a link or a
mention either.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import markupsafe
from markupsafe import Markup

from stepscope.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import Self

Attribute = str | float | None
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
"""Characters with a meaning in CommonMark or in its tables and math."""


class Marked(Markup):
    """Text in a language of marks. It is called with what stands in the source and with nothing else: the linter (S704)
    and ``tests/contract/test_markup.py`` see to it. ``format``, ``join`` and ``+`` escape what they put into it.
    """

    __slots__ = ()

    @classmethod
    def trusted(cls, text: str) -> Self:
        """``text`` as it is, for the functions that escape each part of it."""
        return cls(text)

    def __format__(self, spec: str, /) -> str:
        """Refused: the string with these marks in it would be escaped where it is put into marked text.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{type(self).__name__} in an f-string: use {type(self).__name__}(...).format(...)")


class Html(Marked):
    """Text that is markup."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: object, /) -> Html:
        """Markup as it is, anything else as a text for an element or for an attribute in quotes, made printable."""
        return s if isinstance(s, Html) else cls.trusted(markupsafe.escape(visible(str(s))))


def visible(text: str) -> str:
    """``text`` on one line, with every control, format and unassigned character replaced by U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    flat = "".join(" " if c in "\t\n\v\f\r" else c for c in text)
    return "".join("\ufffd" if unicodedata.category(c).startswith("C") else c for c in flat)


def number(value: float) -> str:
    """A coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def el(tag: str, attributes: Mapping[str, Attribute] | None = None, *children: str) -> Html:
    """An element. ``children`` are markup or text, attribute values text or numbers; None leaves one out."""
    parts = ["<", tag]
    for name, value in (attributes or {}).items():
        if value is not None:
            parts += [" ", name, '="', Html.escape(value) if isinstance(value, str) else number(value), '"']
    parts += [">", *map(Html.escape, children), "</", tag, ">"]
    return Html.trusted("".join(parts))


def verbatim(tag: str, text: str) -> Html:
    """A ``style`` or ``script`` with a text of our own, in which browsers read no entities.

    Raises:
        ValueError: the text would end the element.
    """
    if "</" in text or "<!--" in text:
        raise ValueError(f"this text would end its {tag}")
    return Html.trusted(f"<{tag}>{text}</{tag}>")


class Md(Marked):
    """Text that is Markdown (CommonMark with tables)."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: object, /) -> Md:
        """Markdown as it is, anything else as a text without markup, mentions or links, on one line."""
        if isinstance(s, Md):
            return s
        text = str(s)
        flat = printable(f".{text}.")[1:-1]  # blanks at the ends belong to what surrounds it
        flat = SPECIAL.sub(r"\\\1", flat)
        # a zero-width joiner keeps "@name" and addresses from becoming mentions and links
        return cls.trusted(flat.replace("@", "@\u2060").replace("://", ":\u2060//"))


def code(text: str) -> Md:
    """Arbitrary text as a code span; pipes are escaped because tables are split before spans are parsed."""
    flat = printable(text).replace("|", "\\|")
    fence = "`" * _fence(flat, 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return Md.trusted(f"{fence}{pad}{flat}{pad}{fence}") if flat else Md()


def block(language: str, lines: Iterable[str], *, indent: str = "") -> Md:
    """Lines in a fence that none of them ends; their own indentation stays."""
    body = [
        re.sub(r"\S+", lambda word: printable(word[0]), re.sub(r"[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]", " ", line))
        for line in lines
    ]
    fence = "`" * _fence("\n".join(body), 3)
    return Md.trusted("\n".join(indent + line for line in (fence + language, *body, fence)))


def _fence(text: str, least: int) -> int:
    return max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Md:
    """A table; a column whose heading starts with a blank is right-aligned."""
    rules = [Md("---:") if title.startswith(" ") else Md("---") for title in head]
    lines: list[Sequence[str]] = [[title.strip() for title in head], rules, *rows]
    return Md("\n").join(Md("| {} |").format(Md(" | ").join(line)) for line in lines)


def listed(texts: Iterable[str]) -> Md:
    """A list of texts; empty for none."""
    return Md("\n").join(Md("- {}").format(text) for text in texts)
