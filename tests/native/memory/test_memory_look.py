"""A look at a real process says what /proc says, and how its mappings lie."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepscope.derive.machine import address_space
from stepscope.native.memory import memory_look
from stepscope.tables.address_space import MemoryLook

HERE = Path(__file__).parent
BLOCK = 2 << 20
HOLDS = """
import mmap, sys
count, size = int(sys.argv[1]), int(sys.argv[2])
blocks = [mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(count)]
for i, block in enumerate(blocks):
    block.madvise(mmap.MADV_NOHUGEPAGE)
    block[: size if i % 2 == 0 else size // 2] = b"x" * (size if i % 2 == 0 else size // 2)
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(count: int, size: int, **environment: str) -> Iterator[int]:
    """A process that holds so many mappings, every second one touched by half, and does nothing more; its pid."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", HOLDS, str(count), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid


def rollup(pid: int) -> dict[str, int]:
    """What the kernel itself sums up over all mappings, in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}


def stable(pid: int) -> tuple[MemoryLook, dict[str, int]]:
    """A look, and the kernel's sums, between which nothing has changed."""
    for _ in range(20):
        before = rollup(pid)
        look = memory_look.look(pid, 0)
        if rollup(pid) == before:
            return look, before
    pytest.fail("the memory of a process that does nothing changes all the time")


def present(pid: int, start: int, end: int) -> list[bool]:
    """Which pages are there, one by one."""
    with Path(f"/proc/{pid}/pagemap").open("rb") as stream:
        stream.seek(start // 4096 * 8)
        words = stream.read((end - start) // 4096 * 8)
    return [bool(word >> 63) for (word,) in struct.iter_unpack("=Q", words)]


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this kernel has no smaps_rollup")
def test_sums_are_the_kernels() -> None:
    """Resident, anonymous, huge and swapped memory, the number of mappings and the page tables are those of /proc."""
    with holding(6, 8 << 20) as pid:
        look, sums = stable(pid)
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        status = Path(f"/proc/{pid}/status").read_text()
    vmstat = Path("/proc/vmstat").read_text().splitlines()
    table = look.mappings
    assert int(table.rss_bytes.sum()) == sums["Rss"]
    assert int(table.anonymous_bytes.sum()) == sums["Anonymous"]
    assert int(table.huge_bytes.sum()) == sums["AnonHugePages"]
    assert int(table.swap_bytes.sum()) == sums["Swap"]
    ranges = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in maps if "[vsyscall]" not in line]
    assert list(zip(table.start.tolist(), table.end.tolist(), strict=True)) == ranges
    assert f"VmPTE:\t{look.counters['page_table_bytes'] >> 10:8} kB" in status
    assert {line.split()[0] for line in vmstat if line.startswith(("thp_", "compact_"))} <= set(look.counters)
    said = address_space.build([look])
    assert (said.resident_bytes, said.anonymous_bytes, said.mappings) == (sums["Rss"], sums["Anonymous"], len(table))
    assert said.swap_bytes == sums["Swap"]
    assert sum(region.resident_bytes for region in said.regions) + said.hidden_bytes == sums["Rss"]


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").is_dir(), reason="no huge pages in this kernel")
def test_blocks_are_those_of_the_page_map() -> None:
    """Full and part blocks are what a page by page count gives."""
    with holding(5, 7 << 20) as pid:
        look, _ = stable(pid)
        table = look.mappings
        rows = [row for row in range(len(table)) if table.full_blocks[row] >= 0]
        assert rows
        for row in rows:
            first = -(-int(table.start[row]) // BLOCK) * BLOCK
            last = int(table.end[row]) // BLOCK * BLOCK
            pages = present(pid, first, last)
            blocks = [pages[i : i + 512] for i in range(0, len(pages), 512)]
            assert table.full_blocks[row] == sum(all(block) for block in blocks)
            assert table.part_blocks[row] == sum(any(block) and not all(block) for block in blocks)
            assert table.block_pages[row] == sum(pages)
    assert table.full_blocks[rows].max() >= 3
    said = address_space.build([look])
    assert said.unasked_bytes is not None
    assert said.unasked_bytes >= BLOCK


def test_a_process_that_is_gone() -> None:
    """It is an error that says so."""
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(FileNotFoundError):
        memory_look.look(process.pid, 0)


@pytest.fixture(name="shim", scope="module")
def _shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    out = tmp_path_factory.mktemp("shim") / "layouts.so"
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", str(out), str(HERE / "layouts.c")], check=True)
    return str(out)


def test_both_layouts_are_told_apart(shim: str) -> None:
    """Mappings of 3 MiB on boundaries with holes between them, and without: seen in the mappings themselves."""
    layouts = {}
    for name in ("padded", "packed"):
        with holding(12, 3 << 20, LD_PRELOAD=shim, STEPSCOPE_TEST_LAYOUT=name) as pid:
            layouts[name] = address_space.layout(memory_look.look(pid, 0))
    assert layouts["padded"].verdict == "padded"
    assert layouts["padded"].padded >= 11
    assert layouts["padded"].hole_bytes == layouts["padded"].padded << 20
    assert layouts["padded"].tail_bytes == layouts["padded"].padded << 20
    assert layouts["packed"].verdict == "packed"
    assert (layouts["packed"].padded, layouts["packed"].hole_bytes) == (0, 0)


def test_whole_blocks_need_no_padding(shim: str) -> None:
    """Mappings whose length is a multiple of a block lie on boundaries without holes: nothing is lost."""
    with holding(12, 4 << 20, LD_PRELOAD=shim, STEPSCOPE_TEST_LAYOUT="padded") as pid:
        seen = address_space.layout(memory_look.look(pid, 0))
    assert (seen.verdict, seen.padded) == ("packed", 0)
