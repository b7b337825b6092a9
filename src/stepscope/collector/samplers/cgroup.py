"""Where a process's control group is, and the numbers in its files: cgroup v2, and v1 by controller.

Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/; cgroups(7).
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def folders(pid: int, controller: str) -> list[Path]:
    """The folders of a process's group and its ancestors for one controller, innermost first; none if unknown."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text("utf-8", "replace")
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
            base = next((ROOT / n for n in places if (ROOT / n).is_dir()), None)
            break
        if not controllers and (ROOT / "cgroup.controllers").exists():
            path, base = inner, ROOT
    if base is None:
        return []
    inner_path = base / path.lstrip("/")
    if ".." in Path(path).parts or not inner_path.is_dir():
        inner_path = base  # a namespace of its own: what is mounted is all that can be seen
    return [inner_path, *(p for p in inner_path.parents if p == base or base in p.parents)]


def read(path: Path) -> str:
    """The text of a small file; empty when it is not there or not ours to read."""
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


def number(path: Path) -> int:
    """The number in a file; -1 for none and for "max"."""
    text = read(path).strip()
    return int(text) if text.isdigit() else -1
