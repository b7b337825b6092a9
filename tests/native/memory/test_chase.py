"""The chase visits what it says, and its measurement tells small pages from huge ones."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from stepscope.native.memory import page_walks
from stepscope.native.memory.chase import AARCH64, CODES, FACTOR, X86_64, Chase
from stepscope.tables.errors import TargetError

PAGE = 4096
SMALL = 4 << 20


def walked(count: int, seed: int, size: int) -> tuple[int, list[int]]:
    """(x at the end, offsets) as the module's docstring says it, over memory of zeros."""
    x, offsets = seed, []
    for _ in range(count):
        x = (x * FACTOR + 1) % 2**64
        page = (x >> 20) & (size - 1) & ~(PAGE - 1)
        offsets.append(page | (page >> 11) & 0xFC0)
    return x, offsets


@pytest.fixture(name="mapped")
def _mapped() -> Chase:
    if platform.machine() not in CODES:
        pytest.skip("no instructions for this processor")
    return Chase()


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_it_computes_what_it_says(mapped: Chase, count: int) -> None:
    """Over zeros, x is what the generator makes of the seed in so many rounds."""
    memory = np.zeros(SMALL, np.uint8)
    assert mapped.run(memory, count, 7) == walked(count, 7, SMALL)[0]


def test_it_reads_where_it_says(mapped: Chase) -> None:
    """A word that is not 0 at the place of the last access is added to x; one at any other place is not."""
    _, offsets = walked(50, 3, SMALL)
    expected, _ = walked(50, 3, SMALL)
    memory = np.zeros(SMALL, np.uint8)
    memory[offsets[-1]] = 5
    assert offsets[-1] not in offsets[:-1]
    assert mapped.run(memory, 50, 3) == (expected + 5) % 2**64
    memory[:] = 1
    for offset in offsets:
        memory[offset : offset + 8] = 0
    assert mapped.run(memory, 50, 3) == expected


def test_lines_use_all_sets_of_the_caches() -> None:
    """Pages of 64 MiB are read at all 64 lines of a page, about equally often, each page at one line alone."""
    _, offsets = walked(20_000, 1, 64 << 20)
    lines = np.bincount([offset % PAGE // 64 for offset in offsets], minlength=64)
    assert lines.min() > 0.5 * lines.mean()
    assert len(set(offsets)) == len({offset // PAGE for offset in offsets})


def test_instructions_are_as_long_as_their_jumps() -> None:
    """The jump back of each code leads to the multiplication."""
    at = X86_64.index(bytes.fromhex("75")) + 2
    assert X86_64[at - 1] - 256 + at == X86_64.index(bytes.fromhex("490fafc0"))
    word = int.from_bytes(AARCH64[13 * 4 : 14 * 4], "little")
    assert (word >> 5 & 0x7FFFF) - (1 << 19) == 4 - 13


def test_another_processor_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without instructions is an error, and the measurement says so instead of failing."""
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(TargetError, match="s390x"):
        Chase()
    found = page_walks.measure([SMALL])
    assert found.points == ()
    assert found.problem


def test_too_little_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most an eighth of the available memory is taken."""
    monkeypatch.setattr(page_walks, "_available_bytes", lambda: 15 * SMALL)
    assert "too little memory" in page_walks.measure([SMALL]).problem


def test_a_measurement(mapped: Chase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size has its times, or the reason why there are none is said; how long they are, no test says."""
    monkeypatch.setattr(page_walks, "ACCESSES", 500)
    found = page_walks.measure([SMALL, 2 * SMALL])
    if found.problem:
        assert "huge pages" in found.problem or "directory" in found.problem
        return
    assert ([point.bytes for point in found.points], found.complete) == ([SMALL, 2 * SMALL], True)
    assert all(point.small_ns > 0 and point.huge_ns > 0 and point.walk_ns >= 0 for point in found.points)


def test_what_is_measured_in_time_holds(mapped: Chase) -> None:
    """Without time for the larger size, the smaller one is measured, and that it is not all is said."""
    found = page_walks.measure([SMALL, 2 * SMALL], seconds=0.0)
    if not found.problem:
        assert ([point.bytes for point in found.points], found.complete) == ([SMALL], False)
