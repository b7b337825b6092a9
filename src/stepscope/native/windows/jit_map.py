"""Names of generated code, as oneDNN, CPython and others report them to perf: ``/tmp/perf-PID.map``.

Source: linux/tools/perf/Documentation/jit-interface.txt: one function a line, start and size in hex, then its name.
"""

from __future__ import annotations

import bisect
from pathlib import Path

MAX_BYTES = 64 << 20


class JitMap:
    """The entries of a process's map; none if it has none."""

    def __init__(self, pid: int, root: str) -> None:
        """Read its map; ``root``: root of its file system."""
        found: dict[int, tuple[int, str]] = {}
        for line in _lines(pid, root):
            parts = line.split(None, 2)
            try:
                start, size = int(parts[0], 16), int(parts[1], 16)
                found[start] = (size, parts[2].strip())
            except (ValueError, IndexError):  # a partly written or malformed line
                continue
        self._starts = sorted(found)
        self._found = found

    def name(self, address: int) -> str:
        """The function at an address; "" if there is no entry."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return ""
        size, name = self._found[self._starts[at]]
        return name if address < self._starts[at] + size else ""


def _lines(pid: int, root: str) -> list[str]:
    """The lines of the map, which is in the process's own file system, under its id in its own namespace."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except OSError:  # it has ended
        status = ""
    own = next((line.split()[-1] for line in status.splitlines() if line.startswith("NSpid:")), str(pid))
    try:
        with Path(root, "tmp", f"perf-{own}.map").open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
