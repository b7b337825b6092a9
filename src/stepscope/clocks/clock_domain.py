"""The clock domain of this process; light, because the launcher may ask for it."""

from __future__ import annotations

import os
from pathlib import Path


def boot_id() -> str:
    """Id of this boot of the kernel; empty if it is unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def time_namespace() -> str:
    """Time namespace of this process; empty for kernels without (before Linux 5.6)."""
    try:
        return os.readlink("/proc/self/ns/time")
    except OSError:
        return ""
