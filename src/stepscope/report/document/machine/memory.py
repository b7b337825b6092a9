"""Address spaces: figures, sizes of mappings, and a drawing of each space."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stepscope.report.blocks import Code, Drawing, Facts, Heading, Share, Stacked, Table, columns
from stepscope.report.marked import Html, el
from stepscope.report.memory import memory_words, room_words
from stepscope.report.page.bars import swatch
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.model.report.machine.memory_map import MemoryMap, Region
    from stepscope.report.blocks import Text

_HEIGHT = 26
_ALL = 100.0
"""The full width, in percent."""
_KEYS = (("mapped", "mapped"), ("resident", "resident"), ("huge", "resident in huge pages"))
SIZES = columns("Anonymous mappings by size | Number: | Resident: | Huge pages: | ")


def _lines(asked: Asked) -> Said:
    yield Lines(label="memory", texts=[tuple(room_words.items(asked.report.memory_room))], where=Where.HEAD)


def _blocks(asked: Asked) -> Blocks:
    maps = asked.report.memory
    for one in maps:
        if len(maps) > 1:
            yield Heading(f"Process {one.pid}", page=True)
        yield Facts(_facts(one), page=True)
        yield Table(SIZES, list(_sizes(one)), page=True)
        yield Drawing(partial(_drawing, one), page=True)


def _facts(one: MemoryMap) -> list[tuple[str, Text]]:
    said = [(f"{title[0].upper()}{title[1:]}", Stacked(texts)) for title, texts in memory_words.facts(one)]
    process = (f"{one.pid}", Code(shlex.join(one.command)))
    return [("Process", process), ("Resident", format_bytes(one.resident_bytes)), *said]


def _sizes(one: MemoryMap) -> Iterator[Sequence[Text]]:
    most = max((size.resident_bytes for size in one.sizes), default=0)
    for size in one.sizes:
        numbers = f"{size.mappings:,}", format_bytes(size.resident_bytes), format_bytes(size.huge_bytes)
        yield memory_words.size_range(size), *numbers, Share(size.resident_bytes / most if most else 0.0)


def _drawing(one: MemoryMap) -> Html:
    keys = Html().join(Html("<li>{}{}</li>").format(swatch(css), label) for css, label in _KEYS)
    note = Html(
        '<p class="note">The address space: each strip is a region without large holes; the height of a '
        'colour is its share of that part of the region.</p><ul class="legend">{}</ul>'
    ).format(keys)
    hidden = Html('<p class="note">{} resident elsewhere.</p>').format(format_bytes(one.hidden_bytes))
    rest = hidden if one.hidden_bytes else Html()
    return Html('<div class="card">{}{}{}</div>').format(note, Html().join(map(_strip, one.regions)), rest)


def _strip(region: Region) -> Html:
    count = len(region.mapped)
    width = _ALL / count
    name = PurePosixPath(region.name).name or "anonymous"
    said = (
        f"{region.start:#014x}: {format_bytes(region.resident_bytes)} resident of "
        f"{format_bytes(region.end - region.start)}, most of it {name}"
    )
    cells = []
    for at, (mapped, resident, huge) in enumerate(zip(region.mapped, region.resident, region.huge, strict=True)):
        for share, css in ((mapped, "mapped"), (resident, "resident"), (huge, "huge")):
            if share > 0:
                place = {"x": f"{at * width:.2f}%", "width": f"{width:.2f}%", "class": css}
                height = max(1.0, share * _HEIGHT)
                cells.append(el("rect", {**place, "y": _HEIGHT - height, "height": height}))
    strip = el(
        "svg",
        {"class": "strip", "width": "100%", "height": _HEIGHT, "role": "img", "aria-label": said},
        el("rect", {"width": "100%", "height": _HEIGHT, "class": "hole"}),
        *cells,
    )
    return Html('<p class="note">{}</p>{}').format(said, strip)


SECTION = Section(key="memory", title="Memory", lines=_lines, blocks=_blocks)
