"""Segments of the job's TCP connections that were sent again, and packets of them that this host dropped, as events.

The kernel's counters (``sockets``) say how many; these say when, so it is known which step waited for one. BPF
programs tell of all sockets of the host (``native.kernel.packet_program``); kept is what belongs to a connection of
the job, by both its ends and its network namespace. They run from when the job's connections carry data to its end.

That takes rights (CAP_BPF and CAP_PERFMON, or root), BTF, and Linux 5.8. What was lost on the way, at another host
or in a switch, is seen as sent again; RDMA is not seen.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector.samplers.base import Rows
from stepscope.native.formats.btf import KernelTypes
from stepscope.native.kernel import packet_program
from stepscope.native.kernel.bpf import RAW_TRACEPOINT, Program, Ring
from stepscope.native.kernel.packet_program import DROPPED_ON_ARRIVAL, RECORD, SENT_AGAIN
from stepscope.native.proc import sock_diag
from stepscope.tables.errors import FormatError
from stepscope.tables.network_tables import PacketTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.collector.samplers.names import NameNumbers

_TYPES = Path("/sys/kernel/btf/vmlinux")
_OFFSETS = Path("/proc/self/timens_offsets")
RING_BYTES = 1 << 18
"""Holds 2,900 events between two looks."""
MOST_PER_LOOK = 2_000
MOST_ROWS = 200_000
"""Events that a session holds; the kernel's counters know of all."""
_REASONS, _PREFIX = "skb_drop_reason", "SKB_DROP_REASON_"
_NO_LOSS = ("SKB_NOT_DROPPED_YET", "SKB_CONSUMED", f"{_PREFIX}NOT_SPECIFIED")
_HAD_ARRIVED = ("OLD", "OFOMERGE", "TCP_CLOSE", "SOCKET_CLOSE")
"""In the names of reasons for what had arrived before, or comes for a socket that is closed."""


class PacketSampler:
    """Follows what happens to the packets of the job's connections. Nothing runs before ``start``."""

    def __init__(self, origin_ns: int, names: NameNumbers) -> None:
        """Times in rows count from ``origin_ns``; reasons are named in ``names``."""
        self.rows = Rows(PacketTable)
        self.problem = ""
        """Why nothing is seen."""
        self.left_out = 0
        """Events of the job that were not stored."""
        self._origin_ns = origin_ns
        self._names = names
        self._ring: Ring | None = None
        self._descriptors: list[int] = []
        self._reasons: Mapping[int, str] = {}
        self._ahead_ns = _ahead_ns()
        self._stored = 0
        self._started = False

    def start(self) -> None:
        """Begin, once; if that is not possible, ``problem`` says why."""
        if self._started:
            return
        self._started = True
        try:
            types = KernelTypes(_TYPES.read_bytes())
        except (OSError, FormatError) as error:
            self.problem = f"this kernel does not tell the layout of its sockets (BTF): {error}"
            return
        where = packet_program.layout(types)
        if where is None:
            self.problem = "the layout of this kernel's sockets is not known"
            return
        self._reasons = {value: name.removeprefix(_PREFIX) for value, name in types.values(_REASONS).items()}
        ignored = {value for value, name in types.values(_REASONS).items() if _ignored(name)}
        try:
            self._ring = Ring(RING_BYTES)
            fd = self._ring.fd
            self._run("tcp_retransmit_skb", packet_program.sent_again(fd, where))
        except OSError as error:
            self.problem = f"{error.strerror or error}; it takes root, or CAP_BPF and CAP_PERFMON"
            self.close()
            return
        if ignored and where.socket >= 0:
            for receiver in (True, False):  # the receiving socket is there from Linux 6.11 on
                try:
                    self._run("kfree_skb", packet_program.dropped(fd, where, ignored=ignored, receiver=receiver))
                    break
                except OSError:
                    continue

    def _run(self, tracepoint: str, code: bytes) -> None:
        program = Program(code, RAW_TRACEPOINT)
        try:
            self._descriptors.append(program.run_at(tracepoint))
        finally:
            program.close()

    def sample(self, number_of: Callable[[str], int], pid: int) -> None:
        """Take the events since the last look.

        Args:
            number_of: the number of a connection of the job, by its ends; -1: it is none of the job's.
            pid: a process in whose network namespace the job is; 0: it is in ours.
        """
        if self._ring is None:
            return
        inode = _inode(pid)
        kept = 0
        for data in self._ring.taken():
            if len(data) < RECORD.size:
                continue
            at_ns, what, reason, there4, here4, port, own, family, there6, here6, namespace = RECORD.unpack_from(data)
            if inode and namespace and namespace != inode:
                continue
            here, there = (here6, there6) if family == socket.AF_INET6 else (here4, there4)
            number = number_of(sock_diag.ends(family, here, own, there, int.from_bytes(port, "big")))
            if number < 0:
                continue
            if kept >= MOST_PER_LOOK or self._stored >= MOST_ROWS:
                self.left_out += 1
                continue
            kept += 1
            self._stored += 1
            why = -1 if what == SENT_AGAIN else self._names.number(f"drop:{self._reasons.get(reason, reason)}")
            at = at_ns + self._ahead_ns - self._origin_ns
            self.rows.add(at, number, why, int(what == DROPPED_ON_ARRIVAL))

    def close(self) -> None:
        """End the programs."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        if self._ring is not None:
            self._ring.close()
            self._ring = None


def _ignored(name: str) -> bool:
    return name in _NO_LOSS or any(word in name for word in _HAD_ARRIVED)


def _inode(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid or 'self'}/ns/net").st_ino
    except OSError:
        return 0


def _ahead_ns() -> int:
    """By how much our CLOCK_MONOTONIC is ahead of the host's, in a time namespace. Source: time_namespaces(7)."""
    try:
        lines = _OFFSETS.read_text("ascii").splitlines()
    except OSError:
        return 0
    words = next((line.split() for line in lines if line.startswith("monotonic")), ["", "0", "0"])
    return int(words[1]) * 1_000_000_000 + int(words[2])
