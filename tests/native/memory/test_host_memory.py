"""The host's free memory and its sizes of huge pages, as several kernels show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.native.memory import host_memory

KINDS = ("anon_fault_alloc", "anon_fault_fallback", "anon_fault_fallback_charge")
LINUX_6_8: dict[int, tuple[str, dict[str, int]]] = {
    64: ("always inherit madvise [never]", {}),
    2048: ("always [inherit] madvise never", {}),
}
LINUX_6_10 = {
    64: ("[always] inherit madvise never", {**dict(zip(KINDS, (812, 40, 0), strict=True)), "anon_swpout": 3}),
    2048: ("always [inherit] madvise never", {**dict(zip(KINDS, (95, 7, 1), strict=True)), "anon_swpout": 0}),
}
LINUX_6_18 = {
    8: ("", {"shmem_alloc": 0, "shmem_fallback": 0}),
    64: ("always inherit madvise [never]", {"anon_fault_alloc": 0, "swpout": 2, "split": 0, "nr_anon": 0}),
    2048: (
        "always [inherit] madvise never",
        {"anon_fault_alloc": 166094, "anon_fault_fallback": 0, "swpout": 0, "split": 5, "nr_anon": 32}
        | {"split_deferred": 7, "nr_anon_partially_mapped": 2, "zswpout": 1},
    ),
}
"""Files by size in KiB as these versions have them: 6.8 counts nothing, 6.10 names swapped-out pages otherwise, later
ones have a size that only shared memory can use, and counters that nothing here knows by name."""


def made(folder: Path, kernel: dict[int, tuple[str, dict[str, int]]]) -> Path:
    """The folder as a kernel shows it."""
    for kilobytes, (enabled, stats) in kernel.items():
        size = folder / f"hugepages-{kilobytes}kB"
        (size / "stats").mkdir(parents=True)
        if enabled:
            (size / "enabled").write_text(f"{enabled}\n")
        for name, count in stats.items():
            (size / "stats" / name).write_text(f"{count}\n")
    (folder / "khugepaged").mkdir()
    return folder


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (LINUX_6_8, [(64, "never", {}), (2048, "inherit", {})]),
        (
            LINUX_6_10,
            [
                (
                    64,
                    "always",
                    dict(zip(KINDS, (812, 40, 0), strict=True)) | {"swpout": 3},
                ),
                (
                    2048,
                    "inherit",
                    dict(zip(KINDS, (95, 7, 1), strict=True)) | {"swpout": 0},
                ),
            ],
        ),
        (
            LINUX_6_18,
            [
                (64, "never", {"anon_fault_alloc": 0, "swpout": 2, "split": 0, "nr_anon": 0}),
                (2048, "inherit", LINUX_6_18[2048][1]),
            ],
        ),
    ],
    ids=["6.8", "6.10", "6.18"],
)
def test_sizes_of_kernels(
    tmp_path: Path,
    kernel: dict[int, tuple[str, dict[str, int]]],
    expected: list[tuple[int, str, dict[str, int]]],
) -> None:
    """Each size with its setting and the counters that this kernel has, all of them where it is used; a size of shared
    memory alone is left out."""
    found = host_memory.page_sizes(made(tmp_path, kernel))
    assert [(one.bytes >> 10, one.mode, one.counters) for one in found] == expected


def test_a_kernel_that_says_nothing(tmp_path: Path) -> None:
    """Without the files nothing is known, and that is no error."""
    assert host_memory.page_sizes(tmp_path / "none") == ()
    assert host_memory.zones(tmp_path) == ()


def test_this_host() -> None:
    """The free memory by blocks is at most what /proc/meminfo calls free, which has more than blocks."""
    if not Path("/proc/buddyinfo").exists():
        pytest.skip("this kernel has no buddyinfo")
    blocks = [zone.blocks for zone in host_memory.zones()]
    free = sum(count << order for zone in blocks for order, count in enumerate(zone)) * 4096
    (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemFree:"))
    assert 0 < free < 1.2 * (int(line.split()[1]) << 10)
