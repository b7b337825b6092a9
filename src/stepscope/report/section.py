"""A section of the report: by data, what of it stands where. ``document.sections`` lists all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

from stepscope.report.blocks import Block
from stepscope.report.lines import NO_BREAK, SEPARATOR

if TYPE_CHECKING:
    from stepscope.model.report.report import Report

Blocks = Iterator[Block]


class Where(IntEnum):
    """Where lines stand in the terminal; those of one place in the order of the sections."""

    IMPORTED = 0
    """The head of a report on files of other tools."""
    HEAD = 1
    HEAD_END = 2
    FIRST = 3
    """Right below the findings."""
    BELOW = 4
    END = 5


class Asked(Struct, frozen=True, kw_only=True):
    """A report, and with what it is shown."""

    report: Report
    sources: Mapping[str, str] = {}
    """Path to text of the user's files, for excerpts of the code."""
    session_path: str = ""
    price: float = 0.0
    """Of an hour of the machine, in any currency; 0: not given."""
    verbose: bool = False


class Short(Struct, frozen=True):
    """A text of which a terminal shows what fits into one line."""

    text: str


class Lines(Struct, frozen=True, kw_only=True):
    """Lines of the terminal behind a label."""

    label: str
    texts: Iterable[str | Short | tuple[str, ...]]
    """Each begins a line: a text, or items with middle dots between them."""
    where: Where
    style: str = ""
    web: bool = False
    """Whether the web page has them in its head: no block of a section says the same."""
    always: bool = False
    """Shown even of a job of which there is nothing to say."""

    def flat(self) -> list[str]:
        """The same without a width."""
        joined = (
            SEPARATOR.join(one) if isinstance(one, tuple) else one.text if isinstance(one, Short) else one
            for one in self.texts
        )
        return [text.replace(NO_BREAK, " ") for text in joined if text]


Said = Iterator[Lines]


def _none(_: Asked) -> Iterator[NoReturn]:
    return iter(())


class Section(Struct, frozen=True, kw_only=True):
    """A section. Its functions return nothing where it has nothing to say."""

    key: str
    """Its address on the page."""
    title: str = ""
    lines: Callable[[Asked], Said] = _none
    """For the terminal."""
    blocks: Callable[[Asked], Blocks] = _none
    """For Markdown and the page."""
