"""Names of generated code, as oneDNN, CPython and others tell perf: ``/tmp/perf-PID.map``.

Source: linux/tools/perf/Documentation/jit-interface.txt: one function a line, start and size in hex, then its name.
"""

from __future__ import annotations

import bisect
from pathlib import Path

MAX_BYTES = 64 << 20


class JitMap:
    """What a process has told; nothing where it tells nothing."""

    def __init__(self, pid: int, root: str) -> None:
        """Read its map; ``root``: where its file system begins."""
        found: dict[int, tuple[int, str]] = {}
        for line in _lines(pid, root):
            parts = line.split(None, 2)
            try:
                start, size = int(parts[0], 16), int(parts[1], 16)
                found[start] = (size, parts[2].strip())
            except (ValueError, IndexError):  # a line that is being written, or none of the format
                continue
        self._starts = sorted(found)
        self._found = found

    def name(self, address: int) -> str:
        """The function at an address; "" where none is told."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return ""
        size, name = self._found[self._starts[at]]
        return name if address < self._starts[at] + size else ""


def _lines(pid: int, root: str) -> list[str]:
    """The map lies in the process's own file system, under its number in its own namespace."""
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
