"""A host as the doctor sees it: files below a root, an environment, programs, and the kernel's permission to count.

A test's host is a folder with the relevant files.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from stepscope.machine import nvml
from stepscope.native.kernel import counting

_CAPABILITIES = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38, "CAP_BPF": 39}
"""Bits of CapEff. Source: include/uapi/linux/capability.h."""

_MAX_BYTES = 1 << 20


def _glibc() -> tuple[int, int] | None:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
    except (OSError, ValueError):
        return None
    return (int(major), int(minor)) if name == "glibc" else None


class Host(Struct, frozen=True, kw_only=True):
    """One host, seen by one user."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    program: Callable[[str], str | None] = shutil.which
    """Function that finds a program which the user can run; None if there is none."""
    try_counting: Callable[[counting.Counter], str] = counting.attempt
    """Function that returns "" if the kernel permits counting, else the reason."""
    gpus: Callable[[], nvml.Gpus] = nvml.look
    """Function that asks NVML."""
    libc: tuple[int, int] | None = field(default_factory=_glibc)
    """Version of glibc; None with another C library."""

    def path(self, name: str) -> Path:
        """The place of the file ``name``, an absolute path."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """A file, at most its first MiB, without surrounding white space; None if it is missing or unreadable."""
        try:
            with self.path(name).open("rb") as stream:
                return stream.read(_MAX_BYTES).decode("utf-8", "replace").strip()
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        """The first number of a file; None if there is none."""
        found = re.match(r"-?\d+", self.text(name) or "")
        return int(found.group()) if found else None

    def folder(self, name: str) -> list[str]:
        """The names in a folder; none if it cannot be listed."""
        try:
            return sorted(os.listdir(self.path(name)))
        except OSError:
            return []

    def fields(self, name: str) -> dict[str, str]:
        """Lines like ``key: value`` and ``key value``, by key."""
        pairs = (re.split(r":\s*|\s+", line, maxsplit=1) for line in (self.text(name) or "").splitlines())
        return {pair[0]: pair[1].strip() for pair in pairs if len(pair) > 1}

    def may(self, capability: str) -> bool:
        """Whether we hold a capability."""
        held = self.fields("/proc/self/status").get("CapEff", "0")
        return bool(int(held, 16) >> _CAPABILITIES[capability] & 1)

    @property
    def is_container(self) -> str:
        """The sign that this is a container; "" if there is none."""
        for mark in ("/.dockerenv", "/run/.containerenv"):
            if self.path(mark).exists():
                return mark
        return "KUBERNETES_SERVICE_HOST" if "KUBERNETES_SERVICE_HOST" in self.environment else ""

    def cpus(self) -> int:
        """The number of CPUs that this process may run on, for which TensorFlow, OpenMP and others make threads."""
        return len(numbers(self.fields("/proc/self/status").get("Cpus_allowed_list", ""))) or self.online()

    def online(self) -> int:
        """The number of CPUs that are online."""
        return len(numbers(self.text("/sys/devices/system/cpu/online") or "")) or 1


def numbers(text: str) -> list[int]:
    """The numbers of a kernel's list: ``numbers("0-2,5") == [0, 1, 2, 5]``."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found += range(int(first), int(last or first) + 1)
    return found
