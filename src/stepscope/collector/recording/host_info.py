"""What is known of this machine before anything is measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from stepscope.clocks import clock_domain
from stepscope.model.session.session import HostInfo


def host_info() -> HostInfo:
    """The machine of this run."""
    uname = platform.uname()
    return HostInfo(
        name=uname.node,
        kernel=uname.release,
        machine=uname.machine,
        cpu=_field("/proc/cpuinfo", "model name"),
        cpus=os.cpu_count() or 0,
        memory_bytes=int(_field("/proc/meminfo", "MemTotal").split(" ")[0] or 0) * 1024,
        boot_id=_text("/proc/sys/kernel/random/boot_id").strip(),
        time_namespace=clock_domain.time_namespace(),
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _field(path: str, name: str) -> str:
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
