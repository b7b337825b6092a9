"""The page's section on address spaces: figures, sizes of mappings, and a drawing of each space."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stepscope.reports.memory import memory_words
from stepscope.reports.page.bars import share_bar, swatch
from stepscope.reports.page.charts import Key
from stepscope.reports.page.svg import el, escape
from stepscope.reports.page.tables import code, facts, table
from stepscope.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.machine.memory_map import MemoryMap, Region

_HEIGHT = 26
_ALL = 100.0
"""The full width, in percent."""
_KEYS = (("mapped", "mapped"), ("resident", "resident"), ("huge", "resident in huge pages"))


def page(maps: Sequence[MemoryMap]) -> str:
    """The section's markup; empty without maps."""
    return "".join(_process(one, named=len(maps) > 1) for one in maps)


def _process(one: MemoryMap, *, named: bool) -> str:
    rows = [
        ("Process", f"{one.pid} {code(shlex.join(one.command))}"),
        ("Resident", format_bytes(one.resident_bytes)),
        ("Huge pages", _lines(memory_words.huge_pages(one))),
        ("Layout", _lines(memory_words.layout(one))),
        ("Page faults", escape(memory_words.faults(one))),
        ("Page tables", format_bytes(one.page_table_bytes)),
        ("Processor", _lines(memory_words.hardware(one))),
        ("TLB misses", _lines(memory_words.translation(one))),
        ("Growth", escape(memory_words.growth(one)) or "only one snapshot"),
        ("Kernel work", escape(memory_words.kernel_work(one))),
        ("Page sizes", _lines(memory_words.page_sizes(one))),
        ("Free memory", _lines(memory_words.free_memory(one))),
    ]
    rows = [(name, text) for name, text in rows if text]
    title = f"<h3>Process {one.pid}</h3>" if named else ""
    most = max((size.resident_bytes for size in one.sizes), default=0)
    sizes = [
        f'<th scope="row">{escape(memory_words.size_range(size))}</th><td class="n">{size.mappings:,}</td>'
        f'<td class="n">{format_bytes(size.resident_bytes)}</td><td class="n">{format_bytes(size.huge_bytes)}</td>'
        f'<td class="b">{share_bar(size.resident_bytes / most if most else 0.0)}</td>'
        for size in one.sizes
    ]
    head = ("Anonymous mappings by size", "Number", "Resident", "Huge pages", "")
    return (
        f'<div class="card">{title}{facts(rows)}</div>'
        f'<div class="card">{table(head, sizes, numeric=(1, 2, 3))}</div>'
        f'<div class="card space">{_drawing(one)}</div>'
    )


def _lines(texts: Sequence[str]) -> str:
    return "<br>".join(map(escape, texts))


def _drawing(one: MemoryMap) -> str:
    keys = "".join(f"<li>{swatch(Key(css=css, kind='box', label=''))}{label}</li>" for css, label in _KEYS)
    note = (
        '<p class="note">The address space: each strip is a region without large holes; the height of a colour is '
        f'its share of that part of the region.</p><ul class="legend">{keys}</ul>'
    )
    rest = f'<p class="note">{format_bytes(one.hidden_bytes)} resident elsewhere.</p>' if one.hidden_bytes else ""
    return note + "".join(map(_strip, one.regions)) + rest


def _strip(region: Region) -> str:
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
    return f'<p class="note">{escape(said)}</p>{strip}'
