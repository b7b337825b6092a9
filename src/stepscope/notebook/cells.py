"""The cells that a kernel has run: their names in a session, and the cells as one script."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python import notebook_cells
from stepscope.tables.nearby import NotebookCell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

MAGIC = "%%stepscope"
SCRIPT = "cells.py"
_RUNS_BODY = (MAGIC, "%%time", "%%timeit", "%%capture", "%%prun")
"""Cell magics whose body is the program's; the bodies of others (``%%bash``) are not."""
_PLACE = re.compile(rf"(?<![\w./-])(?:[^\s:'\"]*/)?{re.escape(SCRIPT)}:(\d+)(?:-(\d+))?(?!\w)")


def known(history: Sequence[str]) -> tuple[NotebookCell, ...]:
    """Every cell of a kernel's history by the number that the kernel gives its text; of equal texts the last.

    ``history``: raw texts by their number in ``In [3]``; that of 0 is empty.
    """
    found: dict[str, NotebookCell] = {}
    for number, text in enumerate(history):
        for body, above in notebook_cells.compiled(text) if text.strip() else ():
            for ended in {body, body.rstrip("\n"), body.rstrip("\n") + "\n"}:  # kept without its last line's end
                key = notebook_cells.hash_of(ended)
                found[key] = NotebookCell(hash=key, name=f"cell {number}", above=above)
    return tuple(found.values())


class Part(Struct, frozen=True, kw_only=True):
    """One cell in the script: ``lines`` of it from ``first`` on; ``above``: lines of the cell that are left out."""

    cell: int
    first: int
    lines: int
    above: int


class Script(Struct, frozen=True, kw_only=True):
    """The cells as a program, and where each of them is in it."""

    text: str
    parts: tuple[Part, ...]

    def named(self, said: str) -> str:
        """A text with places of the script as places of the cells: ``cell 3, line 5``."""
        return _PLACE.sub(lambda match: self._place(int(match[1]), match[2]) or match[0], said)

    def _place(self, line: int, last: str | None) -> str:
        for part in self.parts:
            if part.first <= line < part.first + part.lines:
                shift = part.above + 1 - part.first
                end = f"-{int(last) + shift}" if last else ""
                return f"cell {part.cell}, line {line + shift}{end}"
        return ""


def script(
    history: Sequence[str], last: int, failed: Collection[int], transform: Callable[[str], str], folder: str
) -> Script:
    """The cells up to the measured cell ``last``, as they ran, once each, as a program that runs without a kernel.

    Left out are cells that failed, earlier measured ones, those whose text ran again later, and what only a kernel can
    do: other languages, magics, commands of the shell.

    Args:
        history: as of ``known``.
        last: number of the measured cell.
        failed: numbers of cells that raised.
        transform: makes Python of a cell's text (IPython's ``transform_cell``).
        folder: the kernel's, from which it imports.
    """
    lines = [f"import sys; sys.path.insert(0, {folder!r})"]
    parts: list[Part] = []
    later: dict[str, int] = {text: number for number, text in enumerate(history[: last + 1])}
    for number, text in enumerate(history[: last + 1]):
        earlier = text.lstrip().startswith(MAGIC) and number != last
        if not text.strip() or number in failed or earlier or later[text] != number:
            continue
        body, above = _program(text)
        code = _without_kernel(transform(body)) if body.strip() else None
        if code is not None:
            lines.append(f"# cell {number}")
            parts.append(Part(cell=number, first=len(lines) + 1, lines=len(code), above=above))
            lines.extend(code)
    return Script(text="\n".join(lines) + "\n", parts=tuple(parts))


def _program(text: str) -> tuple[str, int]:
    """What of a cell is the program's, without empty lines at its begin, and how many lines are above it."""
    body, above = notebook_cells.compiled(text)[-1]
    if text.lstrip().startswith("%%") and text.split(maxsplit=1)[0] not in _RUNS_BODY:
        return "", 0
    return body.lstrip("\n"), above


def _without_kernel(code: str) -> list[str] | None:
    """Lines of Python in which each statement that asks the kernel for something is blank; None if it is no Python."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError:
        return None
    lines = textwrap.dedent(code).rstrip("\n").split("\n")
    for statement in tree.body:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if "get_ipython" in names:
            end = statement.end_lineno or statement.lineno
            lines[statement.lineno - 1 : end] = [""] * (end + 1 - statement.lineno)
    return lines
