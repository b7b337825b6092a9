"""An address space in the terminal and on the page."""

from __future__ import annotations

from html.parser import HTMLParser
from types import ModuleType

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.memory_looks import HUGE, KB, MB, look, packed, padded, row

from stepscope.derive.machine import address_space
from stepscope.model.report.machine.memory_map import MemoryMap
from stepscope.model.report.report import Report
from stepscope.report import html
from stepscope.report.memory import memory_text
from stepscope.tables.address_space import FreeZone, PageSize


def of(rows: list[dict[str, int]], kernel: str = "6.18.44") -> MemoryMap:
    """The map of mappings, looked at twice."""
    return address_space.build(
        [look(rows, at_s=1, minor_faults=0), look(rows, at_s=3, minor_faults=10)],
        command=("python", "serve.py", "\x1b[31m<b>"),
        kernel=kernel,
    )


def test_padding_is_told_with_its_kernel_only_where_it_is_seen() -> None:
    """A kernel's habit is named where this process's mappings show it; by its version alone never."""
    seen = memory_text.render([of(padded(8), "6.8.0-45-generic")])
    assert "padded: 8 anonymous mappings" in seen
    assert "efa7df3e3bb5" in seen
    assert "only a measurement shows" in " ".join(seen.split())
    assert "Linux 6.7 to 6.11 align" in seen
    for other in ("6.12.1", "6.6.30", "5.14.0-503.el9"):  # a fix was taken over, or not yet: the version tells nothing
        assert "and the mappings show the alignment" not in memory_text.render([of(padded(8), other)])
        assert other not in memory_text.render([of(packed(8), other)])
    by_program = memory_text.render([of(padded(8))])
    assert "the program or its allocator requests it" in by_program
    assert "efa7df3e3bb5" not in by_program
    silent = memory_text.render([of(packed(8), "6.8.0-45-generic")])
    assert "packed: 8 anonymous mappings" in silent
    assert "6.7" not in silent
    assert "efa7df3e3bb5" not in silent


@pytest.mark.parametrize("rows", [packed(8), padded(8), [row(0x1000, 40 * MB)], []])
def test_nothing_is_promised(rows: list[dict[str, int]]) -> None:
    """No allocator is advised, no factor is named: what brings what, a measurement shows."""
    text = memory_text.render([of(rows)])
    for never in ("LD_PRELOAD", "jemalloc", "tcmalloc", "32x", "11x", "times faster", "swappiness"):
        assert never not in text


def test_text_fits_and_is_safe() -> None:
    """Lines fit the terminal; a name cannot steer it; the drawing shows what is huge and what is mapped only."""
    start = 0x7F00_0000_0000
    rows = [
        row(start, 32 * HUGE, huge_bytes=32 * HUGE, eligible=1),
        row(
            start + 32 * HUGE, 32 * HUGE, rss_bytes=0, anonymous_bytes=0, full_blocks=-1, part_blocks=-1, block_pages=-1
        ),
    ]
    text = memory_text.render([of(rows)], width=80)
    assert "\x1b" not in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert memory_text.HUGE * 32 + memory_text.SHADES[0] * 32 in text
    assert "5.00 per second" in text or "5 per second" in text


def test_free_memory_and_page_sizes_are_told() -> None:
    """A zone without a free block is named with its index; sizes that are never used share a line; none: no line."""
    zones = (FreeZone(node=0, zone="DMA32", blocks=(0,) * 9 + (3,)), FreeZone(node=1, zone="Normal", blocks=(900, 50)))
    sizes = [
        PageSize(bytes=16 * KB, mode="never", counters={}),
        PageSize(bytes=64 * KB, mode="madvise", counters={"anon_fault_alloc": 10, "split": 1, "nr_anon": 6}),
        PageSize(bytes=HUGE, mode="inherit", counters={"anon_fault_alloc": 3}),
    ]
    first = look(packed(2), at_s=1)
    last = look(packed(2), at_s=3)
    later = [replace(one, counters={name: 2 * count for name, count in one.counters.items()}) for one in sizes]
    seen = address_space.build([replace(first, page_sizes=sizes), replace(last, page_sizes=later, zones=zones)])
    text = " ".join(memory_text.render([seen], width=400).split())
    assert "9.91 MiB on the host, 61 % of it in blocks of 2 MiB or more" in text
    assert "zone Normal of node 1 has no free block of 2 MiB: fragmentation index 1.00" in text
    assert "zone DMA32" not in text
    assert "64 KiB (madvise): 768 KiB present, 10 allocated at faults, 1 split" in text
    assert "2 MiB (madvise): 3 allocated at faults" in text
    assert "1 other sizes, 16 KiB to 16 KiB: never" not in text
    assert "16 KiB: never" in text
    plain = memory_text.render([of(packed(2))])
    assert "free memory" not in plain
    assert "page sizes" not in plain


class _Checker(HTMLParser):
    """Counts what is opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.styles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.styles += any(name == "style" for name, _ in attrs)
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_draws_it(samples: ModuleType) -> None:
    """A report with looks has the section, well formed and without inline styles; one without has none."""
    report: Report = samples.SAMPLES["clean"]()
    assert 'id="memory"' not in html.render(report)
    page = html.render(msgspec.structs.replace(report, memory=(of(padded(8)), of(packed(8)))))
    assert 'id="memory"' in page
    assert 'class="strip"' in page
    assert "<b>" not in page.partition('id="memory"')[2].partition("</section>")[0]
    checker = _Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.styles == 0
