"""The page's section on address spaces: figures, sizes of mappings, and a drawing of each space."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stepscope.report.marked import Html, el
from stepscope.report.memory import memory_words
from stepscope.report.page.bars import share_bar, swatch
from stepscope.report.page.charts import Key
from stepscope.report.page.tables import code, facts, notes, table
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.machine.memory_map import MemoryMap, Region

_HEIGHT = 26
_ALL = 100.0
"""The full width, in percent."""
_KEYS = (("mapped", "mapped"), ("resident", "resident"), ("huge", "resident in huge pages"))


def page(maps: Sequence[MemoryMap]) -> Html:
    """The section's markup; empty without maps."""
    return Html().join(_process(one, named=len(maps) > 1) for one in maps)


def _process(one: MemoryMap, *, named: bool) -> Html:
    rows: list[tuple[str, str]] = [
        ("Process", Html("{} {}").format(one.pid, code(shlex.join(one.command)))),
        ("Resident", format_bytes(one.resident_bytes)),
        ("Huge pages", _lines(memory_words.huge_pages(one))),
        ("Layout", _lines(memory_words.layout(one))),
        ("Page faults", memory_words.faults(one)),
        ("Page tables", format_bytes(one.page_table_bytes)),
        ("Processor", _lines(memory_words.hardware(one))),
        ("TLB misses", _lines(memory_words.translation(one))),
        ("Growth", memory_words.growth(one) or "only one snapshot"),
        ("Kernel work", memory_words.kernel_work(one)),
        ("Page sizes", _lines(memory_words.page_sizes(one))),
        ("Free memory", _lines(memory_words.free_memory(one))),
    ]
    rows = [(name, text) for name, text in rows if text]
    title = Html("<h3>Process {}</h3>").format(one.pid) if named else Html()
    most = max((size.resident_bytes for size in one.sizes), default=0)
    sizes = [
        Html(
            '<th scope="row">{}</th><td class="n">{:,}</td><td class="n">{}</td><td class="n">{}</td>'
            '<td class="b">{}</td>'
        ).format(
            memory_words.size_range(size),
            size.mappings,
            format_bytes(size.resident_bytes),
            format_bytes(size.huge_bytes),
            share_bar(size.resident_bytes / most if most else 0.0),
        )
        for size in one.sizes
    ]
    head = ("Anonymous mappings by size", "Number", "Resident", "Huge pages", "")
    return Html('<div class="card">{}{}</div><div class="card">{}</div><div class="card space">{}</div>').format(
        title, facts(rows), table(head, sizes, numeric=(1, 2, 3)), _drawing(one)
    )


def _lines(texts: Sequence[str]) -> Html:
    return Html("<br>").join(texts)


def _drawing(one: MemoryMap) -> Html:
    keys = Html().join(
        Html("<li>{}{}</li>").format(swatch(Key(css=css, kind="box", label="")), label) for css, label in _KEYS
    )
    note = Html(
        '<p class="note">The address space: each strip is a region without large holes; the height of a '
        'colour is its share of that part of the region.</p><ul class="legend">{}</ul>'
    ).format(keys)
    rest = notes([f"{format_bytes(one.hidden_bytes)} resident elsewhere."] if one.hidden_bytes else [])
    return note + Html().join(map(_strip, one.regions)) + rest


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
