"""Reads the host's free memory by block size, and its counters of each size of huge pages. For the look at a process.

/proc/pagetypeinfo, which has more, is not read: the kernel walks lists of free pages for it with the zone locked.

Source: Documentation/admin-guide/mm/transhuge.rst, "hugepages-<size>kB"; Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

from pathlib import Path

from stepscope.native.proc import buddyinfo
from stepscope.tables.address_space import FreeZone, PageSize

PROC, THP = Path("/proc"), Path("/sys/kernel/mm/transparent_hugepage")
COUNTERS = {
    "anon_fault_alloc": ("anon_fault_alloc",),
    "anon_fault_fallback": ("anon_fault_fallback",),
    "split": ("split",),
    "swpout": ("swpout", "anon_swpout"),
    "nr_anon": ("nr_anon",),
}
"""Counters that are kept, each with its names in the kernel, newest first: since Linux 6.10, ``split``
since 6.11, ``nr_anon``, a present number, since 6.12."""


def zones(proc: Path = PROC) -> tuple[FreeZone, ...]:
    """Free memory of each zone; empty if the kernel does not say."""
    return buddyinfo.read(_text(proc / "buddyinfo"))


def page_sizes(folder: Path = THP) -> tuple[PageSize, ...]:
    """Sizes by rising bytes, but for those of shared memory alone; empty before Linux 6.8.

    Cost: some six files per size, and nine sizes with pages of 4 KiB: 1 ms.
    """
    folders = {int(name): path for path in _folders(folder) if (name := path.name[10:-2]).isdigit()}
    sizes = (_page_size(kilobytes << 10, folders[kilobytes]) for kilobytes in sorted(folders) if kilobytes)
    return tuple(one for one in sizes if one.mode)


def _folders(folder: Path) -> list[Path]:
    try:
        return list(folder.glob("hugepages-*kB"))
    except OSError:
        return []


def _page_size(size: int, folder: Path) -> PageSize:
    mode = _text(folder / "enabled").partition("[")[2].partition("]")[0]
    read = {name: _first(folder / "stats", files) for name, files in COUNTERS.items()}
    return PageSize(bytes=size, mode=mode, counters={name: int(text) for name, text in read.items() if text.isdigit()})


def _first(folder: Path, names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _text(folder / name).strip())), "")


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
