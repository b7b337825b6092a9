"""An address space for people: figures, sizes of mappings as bars, regions as rows of cells."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stepscope.check.reports.check_text import printable
from stepscope.report.memory import memory_words
from stepscope.tables.units import format_bytes, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.machine.memory_map import MemoryMap, Region

_TITLE_WIDTH = 15
_RANGE_WIDTH = 26
_BAR_WIDTH = 24
_NAME_WIDTH = 24
_MIN_WIDTH = 60
SHADES = "\u00b7\u2591\u2592\u2593"
"""Mapped but hardly touched; up to a third resident; up to two thirds; more."""
HUGE = "\u2588"
_EIGHTHS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"
_TOUCHED = 0.01


def render(maps: Iterable[MemoryMap], *, width: int = 120) -> str:
    """The maps, one below the other; each line ends in a newline. ``width``: columns of the terminal."""
    return "\n".join("".join(f"{line}\n" for line in _lines(one, max(width, _MIN_WIDTH))) for one in maps)


def _lines(one: MemoryMap, width: int) -> list[str]:
    command = printable(shlex.join(one.command))
    name = command if len(command) <= _RANGE_WIDTH * 2 else f"{command[: _RANGE_WIDTH * 2]}..."
    head = (
        f"{name or 'process'} \u00b7 pid {one.pid} \u00b7 {format_bytes(one.resident_bytes)} resident \u00b7 "
        f"{one.mappings} mappings"
    )
    lines = [head, ""]
    for title, texts in memory_words.facts(one):
        lines += _facts(title, texts, width)
    lines += ["", *_sizes(one), "", *_drawing(one)]
    if one.looks:
        cost, held = max(look.wall_ns for look in one.looks), max(look.longest_ns for look in one.looks)
        part = f", its longest read {format_ns(held)}" if held else ""
        lines += ["", f"the slowest snapshot took {format_ns(cost)}{part}"]
    return lines


def _facts(title: str, texts: list[str], width: int) -> list[str]:
    wrapped = (textwrap.wrap(printable(text), width - _TITLE_WIDTH, break_on_hyphens=False) for text in texts)
    lines = [line for part in wrapped for line in part]
    return [(title if i == 0 else "").ljust(_TITLE_WIDTH) + line for i, line in enumerate(lines)]


def _sizes(one: MemoryMap) -> list[str]:
    head = "anonymous mappings by size".ljust(_RANGE_WIDTH + 8) + "number   resident       huge"
    most = max((size.resident_bytes for size in one.sizes), default=0)
    rows = []
    for size in one.sizes:
        name = f"  {memory_words.size_range(size)}".ljust(_RANGE_WIDTH + 6)
        numbers = f"{size.mappings:>8,} {format_bytes(size.resident_bytes):>10} {format_bytes(size.huge_bytes):>10}"
        rows.append(f"{name}{numbers}  {_bar(size.resident_bytes / most if most else 0.0)}")
    return [head, *(row.rstrip() for row in rows)]


def _bar(share: float) -> str:
    eighths = round(share * _BAR_WIDTH * len(_EIGHTHS))
    full, rest = divmod(eighths, len(_EIGHTHS))
    return HUGE * full + (_EIGHTHS[rest] if rest else "")


def _drawing(one: MemoryMap) -> list[str]:
    shades = SHADES[:0:-1]
    lines = [f"address space   {HUGE} huge pages  {shades} resident, most to least  {SHADES[0]} mapped only"]
    for region in one.regions:
        name = PurePosixPath(printable(region.name)).name or "anonymous"
        cells = "".join(_cell(region, i) for i in range(len(region.mapped)))
        lines.append(f"  {region.start:#014x}  {cells}")
        lines.append(
            f"  {'':14}  {format_bytes(region.resident_bytes)} resident of {format_bytes(region.end - region.start)}, "
            f"{format_bytes(region.cell_bytes)} per cell, mostly {name[:_NAME_WIDTH]}"
        )
    if one.hidden_bytes:
        lines.append(f"  plus {format_bytes(one.hidden_bytes)} resident elsewhere")
    return lines


def _cell(region: Region, at: int) -> str:
    resident, huge = region.resident[at], region.huge[at]
    if huge > resident / 2:
        return HUGE
    if resident > _TOUCHED:
        return SHADES[1 + min(2, int(resident * 3))]
    return SHADES[0] if region.mapped[at] else " "
