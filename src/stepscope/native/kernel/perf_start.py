"""Starting perf without reading files that it does not need.

``perf record`` reads /proc/kallsyms three times before it samples: to find the kernel's start, and symbols of
processors that are absent. The kernel generates that text each time: 0.15 CPU-s, more than perf takes for the rest of a
window of five seconds, at the cost of a job that uses all cores. None of it is needed, because names are looked up when
the window is decoded. perf therefore runs in its own mount namespace, in which that file has the lines of two symbols:
0.01 CPU-s. If that is not allowed it starts as usual.

Source: tools/perf/util/machine.c (``machine__get_running_kernel_start``, ``machine__create_extra_kernel_maps``),
mount_namespaces(7), unshare(1).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SYMBOLS = Path("/proc/kallsyms")
_KERNEL_BEGINS = (b"_text", b"_stext")
_MOUNT = 'mount --bind "$0" /proc/kallsyms 2>/dev/null; exec "$@"'
_PATIENCE_S = 5.0


def words(folder: Path) -> list[str]:
    """Words to put before perf's command, which stays the same process; empty without the rights for it.

    ``folder`` receives the file of two symbols, and must outlive the start.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    try:
        subprocess.run([unshare, "-m", "true"], check=True, capture_output=True, timeout=_PATIENCE_S)
        few = folder / "kallsyms"
        few.write_bytes(_kernel_begins())
    except (OSError, subprocess.SubprocessError):  # no rights, or a sandbox that forbids it
        return []
    return [unshare, "-m", "--", "sh", "-c", _MOUNT, str(few)]


def _kernel_begins() -> bytes:
    """The lines of the symbols at the kernel's start, which are among the first."""
    found = []
    with _SYMBOLS.open("rb") as lines:
        for line in lines:
            if line.split()[2:3] and line.split()[2] in _KERNEL_BEGINS:
                found.append(line)
                if len(found) == len(_KERNEL_BEGINS):
                    break
    return b"".join(found)
