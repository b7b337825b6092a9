"""What mappings say of huge pages, sizes, layout, growth and faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.memory_looks import BASE, KB, MB, look, packed, padded, row

from stepscope.derive.machine import address_space
from stepscope.model.session.session import Manifest, Session
from stepscope.tables.records import ProcessTable


def test_full_blocks_in_small_pages_are_wasted_where_the_kernel_would_take_them() -> None:
    """What is eligible, what nobody asked for, what lies at the edges and what is filled in part are told apart."""
    rows = [
        row(BASE, 10 * MB, eligible=1, huge_bytes=4 * MB),
        row(BASE + 32 * MB, 6 * MB),
        row(BASE + 64 * MB + 4096, 3 * MB),
        row(BASE + 96 * MB, 4 * MB, anonymous_bytes=MB, rss_bytes=MB, full_blocks=0, part_blocks=1, block_pages=256),
        row(BASE + 128 * MB, 300 * KB, full_blocks=-1, part_blocks=-1, block_pages=-1),
        row(BASE + 160 * MB, 8 * MB, name=1, anonymous_bytes=0, full_blocks=-1, part_blocks=-1, block_pages=-1),
    ]
    said = address_space.build([look(rows)])
    assert said.huge_bytes == 4 * MB
    assert said.eligible_bytes == 10 * MB
    assert said.wasted_bytes == 6 * MB
    assert said.unasked_bytes == 6 * MB
    assert said.edge_bytes == 3 * MB + 300 * KB
    assert said.sparse_bytes == MB
    assert (said.anonymous_mappings, said.mappings) == (5, 6)


def test_without_the_page_map_it_says_so() -> None:
    """Unknown is null, never nothing."""
    said = address_space.build([look([row(BASE, 10 * MB, full_blocks=-1, part_blocks=-1, block_pages=-1)])])
    assert (said.wasted_bytes, said.unasked_bytes, said.edge_bytes, said.sparse_bytes) == (None,) * 4


@pytest.mark.parametrize(
    ("rows", "verdict", "count"),
    [
        ([], "none", 0),
        ([row(BASE, MB)], "none", 0),
        (packed(8), "packed", 0),
        (padded(3), "packed", 2),
        (padded(4), "packed", 3),
        (padded(5), "padded", 4),
        ([*padded(5), *[row(BASE + (64 + 8 * i) * MB + 4096, 3 * MB) for i in range(3)]], "padded", 4),
        ([*padded(5), *[row(BASE + (64 + 8 * i) * MB + 4096, 3 * MB) for i in range(4)]], "mixed", 4),
        (padded(8, size=4 * MB), "packed", 0),
    ],
)
def test_layouts(rows: list[dict[str, int]], verdict: str, count: int) -> None:
    """Four that begin on a boundary before a hole, and half of those that could: the edges of both."""
    seen = address_space.layout(look(rows))
    assert (seen.verdict, seen.padded) == (verdict, count)
    assert seen.hole_bytes == count * MB


def test_heaps_of_threads_are_no_padding() -> None:
    """The C library's heaps begin on boundaries of 64 MiB; what follows them is theirs, reserved: no hole."""
    rows = []
    for i in range(8):
        start = BASE + i * 64 * MB
        rows += [
            row(start, 3 * MB),
            row(start + 3 * MB, 61 * MB, readable=0, writable=0, rss_bytes=0, anonymous_bytes=0),
        ]
    assert address_space.layout(look(rows)).padded == 0


def test_sizes_hold_every_anonymous_mapping_once() -> None:
    """Multiples of a block are a class of their own, files are in none."""
    rows = [row(BASE, 4 * KB), row(BASE + 8 * MB, 3 * MB), row(BASE + 16 * MB, 4 * MB), row(BASE + 64 * MB, MB, name=1)]
    sizes = address_space.build([look(rows)]).sizes
    assert [(one.from_bytes, one.to_bytes, one.multiple, one.mappings) for one in sizes] == [
        (0, 64 * KB, False, 1),
        (2 * MB, 4 * MB, False, 1),
        (4 * MB, 8 * MB, True, 1),
    ]


def test_faults_growth_and_work_between_two_looks() -> None:
    """Rates are over the time between; the host's counters are what they rose by."""
    first = look(packed(2), at_s=1, minor_faults=100, major_faults=0, thp_fault_alloc=7, thp_new=1, page_table_bytes=1)
    last = look(packed(4), at_s=3, minor_faults=300, major_faults=2, thp_fault_alloc=10, thp_new=1, page_table_bytes=2)
    said = address_space.build([first, last])
    assert (said.minor_faults_per_s, said.major_faults_per_s) == (100.0, 1.0)
    assert (said.kernel_work, said.work_ns) == ({"thp_fault_alloc": 3}, 2_000_000_000)
    assert [point.mappings for point in said.looks] == [2, 4]
    alone = address_space.build([last])
    assert (alone.minor_faults_per_s, alone.kernel_work) == (None, {})


def test_faults_of_a_session_are_those_of_its_second_half() -> None:
    """Warm-up does not count where the process was sampled."""
    count = 11
    columns = {name: np.zeros(count, np.int64) for name in ProcessTable.__struct_fields__}
    columns["at_ns"] = np.arange(count) * 1_000_000_000
    columns["pid"] = np.full(count, 7)
    columns["minor_faults"] = np.minimum(np.arange(count), 5) * 10_000 + np.arange(count) * 3
    session = Session(manifest=Manifest(), process=ProcessTable(**columns), memory_looks=[look(packed(2))])
    (said,) = address_space.of_session(session)
    assert said.minor_faults_per_s == pytest.approx(3.0)
    assert address_space.of_session(Session(manifest=Manifest())) == ()


@given(
    st.lists(
        st.tuples(st.integers(0, 600), st.integers(1, 3000), st.integers(0, 4), st.booleans()), min_size=1, max_size=40
    )
)
def test_regions_conserve_what_is_resident(parts: list[tuple[int, int, int, bool]]) -> None:
    """Cells, times their size, hold what the mappings hold: to the rounding of shares; shares are shares."""
    rows, at = [], BASE
    for gap, pages, quarter, readable in parts:
        at += gap * MB
        size = pages * 4096
        resident = size * quarter // 4 // 4096 * 4096 if readable else 0
        rows.append(row(at, size, rss_bytes=resident, anonymous_bytes=resident, readable=int(readable)))
        at += size
    said = address_space.build([look(rows)])
    drawn = 0.0
    for region in said.regions:
        assert len(region.mapped) <= address_space.CELLS
        for mapped, resident_share in zip(region.mapped, region.resident, strict=True):
            assert 0 <= resident_share <= mapped + 1e-4 <= 1 + 1e-3
        held = sum(region.resident) * region.cell_bytes
        assert held == pytest.approx(region.resident_bytes, abs=len(region.resident) * 1e-4 * region.cell_bytes + 4096)
        drawn += region.resident_bytes
    assert drawn + said.hidden_bytes == said.resident_bytes
