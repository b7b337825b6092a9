"""The preloaded library that lays out a job's memory, or asks for huge pages: built once, by the machine's C compiler.

A wheel with it would need one for each machine. It is kept in the user's cache, under the digest of its source.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from stepscope.tables.errors import UsageError

SOURCE = Path(__file__).with_name("layouts.c")
MODE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PAGES = "STEPSCOPE_THP"
"""Variable that says which huge pages the job gets; by it a remedy is known that needs more than the library."""
_SET_THP_DISABLE, _GET_THP_DISABLE, _ONLY_ADVISED = 41, 42, 2
_COMPILE_S = 60


def library() -> Path:
    """The library, built if it is not there yet.

    Raises:
        UsageError: there is no C compiler, or it failed.
    """
    text = SOURCE.read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepscope"
    name = f"layouts-{platform.machine()}-{hashlib.sha256(text).hexdigest()[:16]}.so"
    made = base / name
    if made.exists():
        return made
    compiler = next((found for one in ("cc", "gcc", "clang") if (found := shutil.which(one))), None)
    if compiler is None:
        raise UsageError("not possible: no C compiler (cc, gcc or clang)")
    part = base / f".{name}.{os.getpid()}"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(part), str(SOURCE), "-ldl", "-lpthread"]
    try:
        base.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_S, check=False)
        if done.returncode:
            raise UsageError(f"not possible: {Path(compiler).name} failed: {done.stderr.strip()[-200:]}")
        part.replace(made)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"not possible: the library cannot be built: {error}") from error
    return made


def problem(pages: str) -> str:
    """Why a job cannot be given other huge pages than it has: ``off``, ``advised`` or ``always``; "" if it can."""
    try:
        mode = MODE.read_text().partition("[")[2].partition("]")[0]
    except OSError:
        return "not possible: the kernel has no transparent huge pages"
    if mode == "never":
        return "not possible: huge pages are off on this machine (transparent_hugepage/enabled is never)"
    if pages == "always" and mode == "always":
        return "it is so already: transparent_hugepage/enabled is always"
    if pages == "advised" and mode == "madvise":
        return "it is so already: transparent_hugepage/enabled is madvise"
    if pages == "advised" and not _can_be_advised():
        return "not possible: it needs Linux 6.18 (PR_THP_DISABLE_EXCEPT_ADVISED)"
    return ""


def _can_be_advised() -> bool:
    """Whether this kernel lets a process have huge pages only where it asks; ours is as before afterwards."""
    prctl = ctypes.CDLL(None).prctl
    before = prctl(_GET_THP_DISABLE, 0, 0, 0, 0)
    if before:
        return False
    able = prctl(_SET_THP_DISABLE, 1, _ONLY_ADVISED, 0, 0) == 0
    prctl(_SET_THP_DISABLE, 0, 0, 0, 0)
    return bool(able)
