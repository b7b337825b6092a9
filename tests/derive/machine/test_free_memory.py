"""The kernel's measures of fragmentation, and sizes of huge pages between two looks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.derive.memory_looks import HUGE, look, packed

from stepscope.derive.machine import free_memory
from stepscope.tables.address_space import FreeZone, PageSize

ORDER = 9
PHONE = (8486, 4732, 2175, 1161, 697, 272, 82, 19, 3, 1, 0)
"""Free blocks of a phone that has run a while, without the largest ones."""


def kernels_index(blocks: Sequence[int], order: int) -> int:
    """``__fragmentation_index``, mm/vmstat.c, in whole thousandths."""
    total = sum(blocks)
    pages = sum(count << i for i, count in enumerate(blocks))
    if not total:
        return 0
    if any(blocks[order:]):
        return -1000
    return 1000 - (1000 + pages * 1000 // (1 << order)) // total


def kernels_unusable(blocks: Sequence[int], order: int) -> int:
    """``unusable_free_index``, likewise."""
    pages = sum(count << i for i, count in enumerate(blocks))
    suitable = sum(count << (i - order) for i, count in enumerate(blocks) if i >= order)
    return (pages - (suitable << order)) * 1000 // pages if pages else 1000


@given(st.lists(st.integers(0, 100_000), min_size=11, max_size=11), st.integers(0, 10), st.booleans())
def test_the_index_is_the_kernels(blocks: list[int], order: int, exhausted: bool) -> None:
    """To the rounding of its whole numbers, which divides twice."""
    if exhausted:
        blocks[order:] = [0] * (11 - order)
    index, unusable = kernels_index(blocks, order), kernels_unusable(blocks, order)
    found = free_memory.fragmentation_ratio(blocks, order)
    assert (found is None) == (index == -1000)
    if found is not None:
        assert found == pytest.approx(index / 1000, abs=0.002)
    assert free_memory.unusable_ratio(blocks, order) == pytest.approx(unusable / 1000, abs=0.001)


@pytest.mark.parametrize(
    ("blocks", "fragmented"),
    [
        (PHONE, None),
        ((*PHONE[:9], 0, 0), 0.9937),
        ((0,) * 8 + (4, 0, 0), 0.25),
        ((1,) + (0,) * 10, -0.00195),
        ((0,) * 11, 0.0),
    ],
    ids=["a block is free", "many small blocks", "few large ones", "one page", "nothing"],
)
def test_why_a_huge_page_cannot_be_had(blocks: tuple[int, ...], fragmented: float | None) -> None:
    """Many small blocks are fragmentation, near 1; few, or nothing, are a want of memory, near 0."""
    found = free_memory.fragmentation_ratio(blocks, ORDER)
    assert found == (None if fragmented is None else pytest.approx(fragmented, abs=1e-3))


def test_zones_of_a_look() -> None:
    """The bytes in blocks of a huge page's size are those of order 9 and above, with pages of 4 KiB."""
    zones = (FreeZone(node=1, zone="Normal", blocks=(512,) + (0,) * 8 + (2, 1)),)
    (found,) = free_memory.free_memory(replace(look(packed(1)), zones=zones))
    assert (found.node, found.zone, found.bytes, found.huge_bytes) == (1, "Normal", 5 * HUGE, 4 * HUGE)
    assert found.unusable_ratio == pytest.approx(0.2)
    assert found.fragmentation_ratio is None


def test_page_sizes_between_looks() -> None:
    """Counters are what they rose by, present memory is that of the last look, inherit is the host's mode."""
    early, late = {"split_deferred": 20}, {"split_deferred": 26}
    counters = {"anon_fault_alloc": 5, "split": 9, "nr_anon": 70} | early
    first = replace(
        look(packed(1)),
        page_sizes=[PageSize(bytes=HUGE, mode="inherit", counters=counters)],
    )
    last = replace(
        look(packed(1), at_s=9),
        page_sizes=[
            PageSize(bytes=65536, mode="always", counters={"anon_fault_alloc": 5}),
            PageSize(bytes=HUGE, mode="inherit", counters={"anon_fault_alloc": 8, "split": 9, "nr_anon": 3} | late),
        ],
    )
    new, known = free_memory.page_sizes(first, last)
    assert (new.allocated, new.denied, new.present_bytes) == (None, None, None)
    assert (known.mode, known.allocated, known.denied, known.split) == ("madvise", 3, None, 0)
    assert known.split_deferred == 6
    assert known.present_bytes == 3 * HUGE
    (alone,) = free_memory.page_sizes(first, first)
    assert alone.allocated is None
