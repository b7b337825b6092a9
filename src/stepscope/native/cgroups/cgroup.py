"""A process's control group and the numbers in its files: cgroup v2, and v1 by controller.

Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/; cgroups(7).
"""

from __future__ import annotations

from pathlib import Path

HOST = Path("/")
_UNLIMITED = 1 << 60
"""Threshold of "no limit", which cgroup v1 writes as a number near 2^63."""


def folders(pid: int | str, controller: str, host: Path = HOST) -> list[Path]:
    """The folders of a process's group and its ancestors for one controller, innermost first; none if unknown.

    ``pid`` may be "self"; ``host`` is the root of the host's files.
    """
    root = host / "sys/fs/cgroup"
    try:
        text = (host / f"proc/{pid}/cgroup").read_text("utf-8", "replace")
    except OSError:
        return []
    base: Path | None = None
    path = "/"
    for line in text.splitlines():
        _, controllers, inner = line.split(":", 2)
        names = controllers.split(",")
        if controller in names:
            path = inner
            places = (controllers, controller, "cpu,cpuacct") if controller == "cpu" else (controllers, controller)
            base = next((root / n for n in places if (root / n).is_dir()), None)
            break
        if not controllers and (root / "cgroup.controllers").exists():
            path, base = inner, root
    if base is None:
        return []
    inner_path = base / path.lstrip("/")
    if ".." in Path(path).parts or not inner_path.is_dir():
        inner_path = base  # its own namespace: only what is mounted is visible
    return [inner_path, *(p for p in inner_path.parents if p == base or base in p.parents)]


def read(path: Path) -> str:
    """The text of a small file; empty if it is missing or unreadable."""
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


def number(path: Path) -> int:
    """The number in a file; -1 for none and for "max"."""
    text = read(path).strip()
    return int(text) if text.isdigit() else -1


def quota_milli(folder: Path) -> int:
    """CPU quota in thousandths of a CPU, -1 for none."""
    words = read(folder / "cpu.max").split()
    if len(words) > 1:
        return int(words[0]) * 1000 // int(words[1]) if words[0].isdigit() and words[1].isdigit() else -1
    quota, period = number(folder / "cpu.cfs_quota_us"), number(folder / "cpu.cfs_period_us")
    return quota * 1000 // period if quota > 0 and period > 0 else -1


def memory_limit(folder: Path) -> int:
    """Bytes that the group may hold, -1 for no limit."""
    limit = max(number(folder / "memory.max"), number(folder / "memory.limit_in_bytes"))
    return limit if 0 < limit < _UNLIMITED else -1
