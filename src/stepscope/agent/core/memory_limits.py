"""What bounds this process's memory: its control groups, its address space, the host.

Source: cgroup v2 ``memory.max``, v1 ``memory.limit_in_bytes`` (cgroups(7)); RLIMIT_AS (getrlimit(2)); /proc/meminfo.
"""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

_UNLIMITED = 1 << 60
_ROOT, _GROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"


def control_group() -> tuple[int, str]:
    """(bytes, file with the bytes in use) of the tightest limit of this process's groups; (0, "") for none."""
    found: list[tuple[int, str]] = []
    for folder, limit, usage in _folders():
        try:
            with open(os.path.join(folder, limit), encoding="ascii") as stream:
                text = stream.read().strip()
        except OSError:
            continue
        if text.isdigit() and 0 < int(text) < _UNLIMITED:
            found.append((int(text), os.path.join(folder, usage)))
    return min(found, default=(0, ""))


def _folders() -> list[tuple[str, str, str]]:
    """(folder, its file of the limit, its file of the use) of the group and its ancestors."""
    try:
        with open(_GROUPS, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    base, path, names = "", "/", ("memory.max", "memory.current")
    for line in lines:
        _, controllers, inner = line.split(":", 2)
        if "memory" in controllers.split(","):
            base, path = _ROOT + "/memory", inner
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            break
        if not controllers:
            base, path = _ROOT, inner
    if not os.path.isdir(base + path):
        path = "/"  # its own namespace: only what is mounted is visible
    found = []
    while True:
        found.append((base + path, *names))
        if path in ("/", ""):
            return found
        path = os.path.dirname(path)


def address_space() -> int:
    """Bytes that RLIMIT_AS allows; 0: no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return soft if 0 < soft < _UNLIMITED else 0


def host() -> int:
    """Memory of the host; 0: unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def cache(usage_file: str) -> Optional[int]:
    """Page cache in the group of a file of use, which the kernel takes back first."""
    try:
        with open(os.path.join(os.path.dirname(usage_file), "memory.stat"), encoding="ascii") as stream:
            words = stream.read().split()
    except OSError:
        return None
    for name in ("total_cache", "file"):
        if name in words:
            return int(words[words.index(name) + 1])
    return None
