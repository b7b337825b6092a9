"""A window in which every system call of a process is counted, in the kernel: nothing is copied out for each call.

A tracer that stops the process at each call makes a cheap one a hundred times dearer; two BPF programs at the kernel's
own events add some tenths of a microsecond (docs/captures.md). They need root, and do not touch the process.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native.cpython import layout_check
from stepscope.native.kernel import bpf
from stepscope.native.kernel import system_call_program as program
from stepscope.native.kernel.descriptors import Descriptors
from stepscope.native.kernel.system_call_names import names
from stepscope.tables.errors import CaptureError
from stepscope.tables.system_calls import CallTotal, SystemCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 5.0
MAX_THREADS, MAX_TOTALS = 8_192, 16_384
"""Sizes of the tables: 128 KiB and 900 KiB."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOVING = _words(
    "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 sendto recvfrom sendmsg recvmsg sendfile "
    "copy_file_range splice getdents64"
)
"""Calls that return a number of bytes."""
OF_DESCRIPTOR = MOVING | _words(
    "fsync fdatasync ftruncate fallocate sync_file_range fstat lseek ioctl fcntl flock connect accept accept4 close "
    "epoll_wait epoll_pwait recvmmsg sendmmsg io_uring_enter"
)
"""Calls whose first argument is a descriptor."""


class CallWindow:
    """One window. Call ``poll`` until it is over, then ``take``."""

    def __init__(self, pid: int, from_ns: int, seconds: float = 0.0) -> None:
        """Prepare to count from ``from_ns`` on (CLOCK_MONOTONIC). ``seconds``: 0 for the usual length.

        Raises:
            CaptureError: no rights, no BPF, another processor, or a process of another container.
        """
        self.seconds = seconds or SECONDS
        self.problem = ""
        """Why nothing was counted."""
        self.began_ns = self.ended_ns = 0
        self._pid, self._from_ns = pid, from_ns
        self._names = names(platform.machine())
        if not self._names:
            raise CaptureError(f"system calls cannot be counted on {platform.machine()}; expected x86-64 or aarch64")
        try:
            if not layout_check.is_here(pid):
                raise CaptureError(f"process {pid} is in another container; run stepscope there")
            self._load()
        except OSError as error:
            raise CaptureError(_refused(error)) from error
        self._threads = dict(_threads(pid))

    def _load(self) -> None:
        numbers = [number for number, name in self._names.items() if name in OF_DESCRIPTOR]
        with ExitStack() as held:
            self._begun = held.enter_context(
                closing(bpf.HashMap(program.BEGUN_KEY.size, program.BEGUN.size, MAX_THREADS))
            )
            self._totals = held.enter_context(
                closing(bpf.HashMap(program.TOTAL_KEY.size, program.TOTAL.size, MAX_TOTALS))
            )
            begins = program.begins(self._pid, self._begun.fd, numbers, platform.machine())
            ends = program.ends(self._pid, self._begun.fd, self._totals.fd)
            self._programs = {
                where: held.enter_context(closing(bpf.Program(code, bpf.RAW_TRACEPOINT)))
                for where, code in (("sys_exit", ends), ("sys_enter", begins))
            }
            self._running = held.enter_context(ExitStack())
            self._held = held.pop_all()

    def poll(self, now_ns: int) -> bool:
        """Whether counting is over: the time is up, or the process has ended."""
        if not self.began_ns and now_ns >= self._from_ns:
            self._begin()
        gone = not Path(f"/proc/{self._pid}").exists()
        if gone or (self.began_ns and now_ns >= self.began_ns + int(self.seconds * 1e9)):
            self.stop()
        return self.ended_ns > 0

    def _begin(self) -> None:
        try:
            for where, loaded in self._programs.items():
                self._running.callback(os.close, loaded.run_at(where))
        except OSError as error:
            self.problem = _refused(error)
            self.stop()
        self.began_ns = time.monotonic_ns()

    def stop(self) -> None:
        """Stop counting now."""
        if not self.ended_ns:
            self._running.close()
            self.ended_ns = time.monotonic_ns()
            self.problem = self.problem or ("" if self.began_ns else "the process ended before the window began")

    def take(self, *, origin_ns: int) -> SystemCalls:
        """What was counted. ``origin_ns``: the session's start."""
        self._threads.update(_threads(self._pid))
        found = list(self._ended())
        full = len(found) >= MAX_TOTALS
        found += self._unfinished()
        return SystemCalls(
            pid=self._pid,
            at_ns=self.began_ns - origin_ns,
            wall_ns=max(1, self.ended_ns - self.began_ns),
            calls=_merged(found),
            full=full,
        )

    def _ended(self) -> Iterator[CallTotal]:
        targets = Descriptors(self._pid)
        for key, value in self._totals.items():
            tid, number, descriptor, _ = program.TOTAL_KEY.unpack(key)
            count, total_ns, longest_ns, given, failed = program.TOTAL.unpack(value)
            call = self._names.get(number, f"call {number}")
            yield CallTotal(
                native=tid,
                thread=self._threads.get(tid, ""),
                call=call,
                target=targets.target(descriptor) if descriptor != program.NO_DESCRIPTOR else "",
                count=count,
                total_ns=total_ns,
                longest_ns=longest_ns,
                bytes=given if call in MOVING else 0,
                failed=failed,
            )

    def _unfinished(self) -> Iterator[CallTotal]:
        """Threads that are still in a call."""
        targets = Descriptors(self._pid)
        for key, value in self._begun.items():
            (tid,) = program.BEGUN_KEY.unpack(key)
            at_ns, number, descriptor = program.BEGUN.unpack(value)
            if Path(f"/proc/{self._pid}/task/{tid}").exists() and at_ns < self.ended_ns:
                yield CallTotal(
                    native=tid,
                    thread=self._threads.get(tid, ""),
                    call=self._names.get(number, f"call {number}"),
                    target=targets.target(descriptor) if descriptor != program.NO_DESCRIPTOR else "",
                    count=0,
                    total_ns=0,
                    longest_ns=0,
                    unfinished_ns=self.ended_ns - at_ns,
                )

    def close(self) -> None:
        """Release everything."""
        self.stop()
        self._held.close()


def _merged(rows: list[CallTotal]) -> tuple[CallTotal, ...]:
    """One row for what differs only by the descriptor's number, most time first."""
    found: dict[tuple[int, str, str], CallTotal] = {}
    for row in rows:
        key = (row.native, row.call, row.target)
        known = found.get(key)
        found[key] = row if known is None else _sum(known, row)
    return tuple(sorted(found.values(), key=lambda row: -(row.total_ns + row.unfinished_ns)))


def _sum(one: CallTotal, other: CallTotal) -> CallTotal:
    return CallTotal(
        native=one.native,
        thread=one.thread,
        call=one.call,
        target=one.target,
        count=one.count + other.count,
        total_ns=one.total_ns + other.total_ns,
        longest_ns=max(one.longest_ns, other.longest_ns),
        bytes=one.bytes + other.bytes,
        failed=one.failed + other.failed,
        unfinished_ns=one.unfinished_ns + other.unfinished_ns,
    )


def _refused(error: OSError) -> str:
    return f"system calls cannot be counted: {error.strerror or error}; expected root (CAP_BPF, CAP_PERFMON)"


def _threads(pid: int) -> Iterator[tuple[int, str]]:
    """(thread id, name) of a process's threads."""
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                yield int(task.name), (task / "comm").read_text("utf-8", "replace").strip()
            except OSError:  # it has ended
                continue
    except OSError:  # the process has
        return
