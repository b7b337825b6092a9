"""Samples measured processes: CPU time, memory, faults, I/O.

Source: /proc/PID/stat, statm and io (proc(5)); the thread sampler covers data that only threads have.
"""

from __future__ import annotations

import os

from stepscope.collector.samplers.base import TICK_NS, ProcFile, Rows
from stepscope.collector.samplers.sockets import Traffic
from stepscope.collector.samplers.threads import ThreadTotals
from stepscope.tables.records import ProcessTable

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MINFLT, _MAJFLT, _UTIME, _STIME, _RSS = 7, 9, 11, 12, 21
"""Positions in /proc/PID/stat after the command's closing bracket (field number minus 3)."""
_SHARED = 2
"""Position in /proc/PID/statm."""


class ProcessSampler:
    """Follows the measured processes."""

    def __init__(self, origin_ns: int) -> None:
        """Times in rows count from ``origin_ns``."""
        self.rows = Rows(ProcessTable)
        self._origin_ns = origin_ns
        self._files: dict[int, tuple[ProcFile, ProcFile, ProcFile]] = {}

    def sample(self, now_ns: int, totals: dict[int, ThreadTotals], traffic: dict[int, Traffic] | None = None) -> None:
        """Add a row for each live process; ``totals`` are the thread sampler's, ``traffic`` the sockets'."""
        for pid in [p for p in self._files if p not in totals]:
            for file in self._files.pop(pid):
                file.close()
        for pid, threads in totals.items():
            if pid not in self._files:
                stat, io, statm = (ProcFile(f"/proc/{pid}/{name}") for name in ("stat", "io", "statm"))
                self._files[pid] = (stat, io, statm)
            self._sample_process(now_ns - self._origin_ns, pid, threads, (traffic or {}).get(pid))

    def _sample_process(self, at_ns: int, pid: int, threads: ThreadTotals, traffic: Traffic | None) -> None:
        stat_file, io_file, statm_file = self._files[pid]
        stat = stat_file.read()
        values = stat[stat.rfind(b")") + 2 :].split()
        if len(values) <= _RSS:
            return
        read_bytes, write_bytes = _io(io_file.read())
        vm_bytes, shared_bytes = _sizes(statm_file.read())
        self.rows.add(
            at_ns,
            pid,
            int(values[_UTIME]) * TICK_NS,
            int(values[_STIME]) * TICK_NS,
            threads.run_ns,
            threads.wait_ns,
            threads.threads,
            threads.running,
            int(values[_RSS]) * _PAGE_BYTES,
            int(values[_MINFLT]),
            int(values[_MAJFLT]),
            threads.voluntary,
            threads.involuntary,
            read_bytes,
            write_bytes,
            vm_bytes,
            shared_bytes,
            threads.blocked,
            *((traffic.received, traffic.sent, traffic.queued) if traffic else (-1, -1, -1)),
        )


def _io(text: bytes) -> tuple[int, int]:
    """Bytes read from and written to storage, -1 each if the kernel does not allow it."""
    words = text.split()
    try:
        return int(words[words.index(b"read_bytes:") + 1]), int(words[words.index(b"write_bytes:") + 1])
    except (ValueError, IndexError):
        return -1, -1


def _sizes(text: bytes) -> tuple[int, int]:
    """Address space, and the shared part of its resident memory, in bytes; -1 each if the process has gone."""
    words = text.split()
    return (int(words[0]) * _PAGE_BYTES, int(words[_SHARED]) * _PAGE_BYTES) if len(words) > _SHARED else (-1, -1)
