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
    "split_deferred": ("split_deferred",),
    "swpout": ("swpout", "anon_swpout"),
    "nr_anon": ("nr_anon",),
}
"""Counters that are kept of each size, with their names in the kernel, newest first: since Linux 6.10, those of splits
since 6.11, ``nr_anon``, a present number, since 6.12. Of a size that is in use, all that the kernel has are kept."""


def zones(proc: Path = PROC) -> tuple[FreeZone, ...]:
    """Free memory of each zone; empty if the kernel does not say."""
    return buddyinfo.read(_text(proc / "buddyinfo"))


def page_sizes(folder: Path = THP) -> tuple[PageSize, ...]:
    """Sizes by rising bytes, but for those of shared memory alone; empty before Linux 6.8.

    Cost: some seven files per size, and nine sizes with pages of 4 KiB: 1 ms; 20 files of a size that is in use.
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
    if mode not in {"", "never"} or read["nr_anon"].strip("0"):
        known = {file for files in COUNTERS.values() for file in files}
        read |= {path.name: _text(path).strip() for path in _files(folder / "stats") if path.name not in known}
    return PageSize(bytes=size, mode=mode, counters={name: int(text) for name, text in read.items() if text.isdigit()})


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _first(folder: Path, names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _text(folder / name).strip())), "")


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""
