"""Samples the network interfaces that the job sees.

Source: /proc/PID/net/dev of the job (its network namespace), or /proc/net/dev as read by the host sampler if the job is
in ours; the speed in /sys/class/net/NAME/speed (Documentation/ABI/testing/sysfs-class-net), which covers only our own
namespace. No file holds the bytes of a process: see ``sockets``.
"""

from __future__ import annotations

import os
from pathlib import Path

from stepscope.collector.samplers.base import ProcFile, Rows, Targets
from stepscope.collector.samplers.names import NameNumbers
from stepscope.tables.records import LinkTable

_SPEED_EVERY = 30
_WORDS = 16
_MEGABIT = 1_000_000


class LinkSampler:
    """Follows the interfaces of the job's network namespace."""

    def __init__(self, origin_ns: int, names: NameNumbers) -> None:
        """Times in rows count from ``origin_ns``; interfaces are named in ``names``."""
        self.rows = Rows(LinkTable)
        self._origin_ns = origin_ns
        self._names = names
        self._own_file: ProcFile | None = None
        self._asked = 0
        self._speeds: dict[str, tuple[int, int]] = {}
        self._looks = 0

    @property
    def foreign(self) -> bool:
        """Whether the job is in another network namespace than we are."""
        return self._own_file is not None

    def sample(self, now_ns: int, text: bytes, targets: Targets) -> None:
        """A row for each interface; ``text`` is /proc/net/dev of our own namespace."""
        self._looks += 1
        if targets.job_pid and self._asked != targets.job_pid:
            self._asked = targets.job_pid
            if _namespace(targets.job_pid) not in ("", _namespace(os.getpid())):
                self._own_file = ProcFile(f"/proc/{targets.job_pid}/net/dev")
        if self._own_file is not None:
            text = self._own_file.read_all()
        for name, received, sent in interfaces(text):
            if received or sent:
                number = self._names.number(f"net:{name}")
                speed = self._speed(name)
                self.rows.add(now_ns - self._origin_ns, number, int(name == "lo"), received, sent, speed)

    def totals(self, text: bytes) -> tuple[int, int]:
        """Received and sent by all interfaces but the loopback, now."""
        received = sent = 0
        for name, rx, tx in interfaces(self._own_file.read_all() if self._own_file else text):
            if name != "lo":
                received += rx
                sent += tx
        return received, sent

    def all_bytes(self, text: bytes) -> int:
        """Received and sent by all interfaces, the loopback's once."""
        found = interfaces(self._own_file.read_all() if self._own_file else text)
        return sum(rx if name == "lo" else rx + tx for name, rx, tx in found)

    def _speed(self, name: str) -> int:
        if self.foreign or name == "lo":
            return -1
        asked, speed = self._speeds.get(name, (-_SPEED_EVERY, -1))
        if self._looks - asked >= _SPEED_EVERY:
            speed = link_speed(name)
            self._speeds[name] = (self._looks, speed)
        return speed


def interfaces(text: bytes) -> list[tuple[str, int, int]]:
    """(name, bytes received, bytes sent) of each interface in a net/dev file."""
    found = []
    for line in text.split(b"\n")[2:]:
        name, colon, rest = line.partition(b":")
        words = rest.split()
        if colon and len(words) >= _WORDS:
            found.append((name.strip().decode("utf-8", "replace"), int(words[0]), int(words[8])))
    return found


def link_speed(name: str) -> int:
    """Bits per second stated by the driver; -1 if there are none, and for devices that are only software.

    A veth pair states 10 Gbit/s and has no real speed: only a device with hardware (or a virtual machine's) counts.
    """
    folder = Path("/sys/class/net") / name
    try:
        speed = int((folder / "speed").read_text("ascii"))
    except (OSError, ValueError):
        return -1
    return speed * _MEGABIT if speed > 0 and (folder / "device").exists() else -1


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""
