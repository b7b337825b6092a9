"""A control group with a limit of memory, for programs that are to run out of it. Needs root."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20


@contextmanager
def group(limit_mib: int) -> Iterator[Path]:
    """A control group with a limit of memory, v1 or v2; its processes have ended when it is left."""
    base = Path("/sys/fs/cgroup/memory") if Path("/sys/fs/cgroup/memory").is_dir() else Path("/sys/fs/cgroup")
    name = "memory.limit_in_bytes" if base.name == "memory" else "memory.max"
    folder = base / f"stepscope-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / name).write_text(str(limit_mib * MIB))
        yield folder
    finally:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.2)
