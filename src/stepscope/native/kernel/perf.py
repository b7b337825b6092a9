"""Linux perf: whether it is installed, what this user may do with it, its command lines; and commands that grant more.

Nothing is changed here: settings of the host are read, and if tracefs is not mounted its events are omitted (perf would
mount it).

Source: perf_event_open(2), Documentation/admin-guide/perf-security.rst, perf-record(1).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.tables.findings import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STACK_BYTES = 32_768
"""Bytes copied from each sample's stack. 16 KiB cut one in seven of the stacks of CPython 3.10 that trace a graph."""
MAX_HZ, MIN_HZ = 99, 9
SAMPLES_PER_S = 200
"""Samples per second of each event, over all CPUs: 33 KB each."""
SITES_PER_S = 40
"""Calls per second that release memory and whose stacks are recorded."""
OFF_BEAT_HZ = 0.5
"""Added to the rate. The agent samples Python stacks at regular times; at exactly its rate, perf would see the agent's
own work in every sample, or in none."""
COUNT_SECONDS = 1.0
"""Time for counting, in which the process also notices the command and samples its Python stacks at that rate."""
BUFFERS = "4M"
"""Buffer size, some 120 samples; with the default of 516 KiB, which held 30, a starved perf lost one in seven."""
NO_CALLS = "DX144"
CALL_PREFIX, SITE_PREFIX = "syscalls:sys_enter_", "site_"
"""Prefixes of perf's event names: every call, and some with their stacks."""
CALLS = ("madvise", "munmap", "brk")
"""System calls that release memory."""
LEAST_FAULTS_PER_S = 10.0
"""Rate of faults below which released memory is not faulted in again, so that only CPU time is recorded."""
_TRACING = Path("/sys/kernel/tracing")
_SETTINGS = Path("/proc/sys/kernel")
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_NO_SAMPLING, _USER_ONLY = 3, 2
"""Values of perf_event_paranoid from which a user without rights can sample nothing, or only user code."""


class Abilities(Struct, frozen=True, kw_only=True):
    """The possible recordings."""

    perf: str
    """Path of the program; "" if there is none, or nothing may be sampled."""
    kernel: bool = False
    """Flag: samples in the kernel are possible."""
    buffers: str = ""
    """Buffer size of each CPU, above what every user may lock: perf may be scheduled late if CPUs are busy. "": the
    default."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """System calls that can be recorded individually, with the numbers of their events."""
    missing: tuple[Diagnostic, ...] = ()
    """Diagnostics of impossible recordings, each with the command that would allow it."""


class Rates(Struct, frozen=True, kw_only=True):
    """The process's activity by its counters, which decides how often it is sampled."""

    cores: float
    faults_per_s: float
    calls_per_s: Mapping[str, float] = field(default_factory=dict)
    """Rates of the calls in ``CALLS``."""
    hz: int = MAX_HZ

    @property
    def faulting(self) -> bool:
        """Whether to record page faults, and the calls that lead to them."""
        return self.faults_per_s >= LEAST_FAULTS_PER_S

    @property
    def frequency(self) -> int:
        """Samples per second of CPU time."""
        return int(min(self.hz, max(MIN_HZ, SAMPLES_PER_S / max(self.cores, 0.1))))

    @property
    def fault_period(self) -> int:
        """Period of sampled faults."""
        return max(1, round(self.faults_per_s / SAMPLES_PER_S))

    def site_period(self, call: str) -> int:
        """Period of calls recorded with their stacks."""
        return max(1, round(self.calls_per_s.get(call, 0.0) / SITES_PER_S))


def abilities() -> Abilities:
    """Examine the host and our own rights."""
    program = shutil.which("perf")
    if program is None:
        text = "no native stacks: perf is not installed; run apt install linux-perf (Ubuntu: linux-tools-$(uname -r))"
        return Abilities(perf="", missing=(Diagnostic(code="DX140", text=text),))
    level = _number("perf_event_paranoid", default=2)
    free = _privileged()
    if not free and level >= _NO_SAMPLING:
        text = (
            f"no native stacks: kernel.perf_event_paranoid is {level}; "
            "run sudo sysctl kernel.perf_event_paranoid=1 (2: without kernel frames)"
        )
        return Abilities(perf="", missing=(Diagnostic(code="DX141", text=text),))
    missing = []
    kernel = free or level < _USER_ONLY
    if not kernel:
        text = (
            f"native stacks lack kernel time: kernel.perf_event_paranoid is {level}; "
            "run sudo sysctl kernel.perf_event_paranoid=1"
        )
        missing.append(Diagnostic(code="DX142", text=text))
    elif _number("kptr_restrict", default=0) > (1 if free else 0):
        text = "kernel frames in native stacks have no names; run sudo sysctl kernel.kptr_restrict=0"
        missing.append(Diagnostic(code="DX143", text=text))
    return Abilities(
        perf=program, kernel=kernel, calls=_calls(), buffers=BUFFERS if free else "", missing=tuple(missing)
    )


def no_calls(lacking: str) -> Diagnostic:
    """What a native window lacks where perf's events of ``CALLS`` cannot be read, and the command that allows it."""
    mounted = (_TRACING / "events").is_dir() or not os.access(_TRACING, os.R_OK | os.X_OK)
    how = "run as root, or grant read access to" if mounted else "run sudo mount -t tracefs nodev"
    text = f"native windows do not {lacking} ({', '.join(CALLS)}): perf's events cannot be read; {how} {_TRACING}"
    return Diagnostic(code=NO_CALLS, text=text)


def command(
    can: Abilities,
    pid: int,
    out: str,
    seconds: float,
    rates: Rates,
    *,
    every_cpu: bool = False,
    begin: Sequence[str] = (),
) -> list[str]:
    """The command that records a window of a process. It ends by itself, even if we have died.

    Events: CPU time; if the process faults, also page faults with their addresses, and every call that releases memory,
    some with their stacks. ``every_cpu``: of all processes, for a program that passes one process's samples; ``begin``:
    the words of ``PerfControl``.
    """
    where = "" if can.kernel else "u"
    dwarf = f"call-graph=dwarf,stack-size={STACK_BYTES}"
    time_of = f"period={round(1e9 / (rates.frequency + OFF_BEAT_HZ))}" if every_cpu else f"freq={rates.frequency}"
    events = [f"cpu-clock/{time_of},{dwarf}/{where}"]
    if rates.faulting:
        events.append(f"page-faults/period={rates.fault_period},{dwarf}/{where}")
        for call, number in can.calls.items():
            every = rates.site_period(call)
            events.append(f"{CALL_PREFIX}{call}")
            events.append(f"tracepoint/config={number},period={every},{dwarf},name={SITE_PREFIX}{call}/")
    return _recording(can, pid, out, seconds, events, addresses=rates.faulting, every_cpu=every_cpu, begin=begin)


def fault_command(
    can: Abilities,
    pid: int,
    out: str,
    seconds: float,
    *,
    period: int,
    every_cpu: bool = False,
    begin: Sequence[str] = (),
) -> list[str]:
    """The command that records every ``period``-th page fault of a process, with its address and stack; else as
    ``command``.
    """
    where = "" if can.kernel else "u"
    event = f"page-faults/period={period},call-graph=dwarf,stack-size={STACK_BYTES}/{where}"
    return _recording(can, pid, out, seconds, [event], addresses=True, every_cpu=every_cpu, begin=begin)


def _recording(
    can: Abilities,
    pid: int,
    out: str,
    seconds: float,
    events: Sequence[str],
    *,
    addresses: bool,
    every_cpu: bool,
    begin: Sequence[str],
) -> list[str]:
    words = [can.perf, "record", "-q", "-o", out, "-k", "CLOCK_MONOTONIC", "-B", "-N", *begin]
    words += ["-d"] if addresses else []
    words += ["-a"] if every_cpu else ["-p", str(pid)]
    if can.buffers:
        words += ["-m", can.buffers]
    for event in events:
        words += ["-e", event]
    return [*words, "--", "sleep", f"{seconds:g}"]


def counting(can: Abilities, pid: int, out: str) -> list[str]:
    """The command that briefly counts the calls of a process, before some of them are recorded with their stacks."""
    events = ",".join(f"{CALL_PREFIX}{call}" for call in can.calls)
    words = [can.perf, "stat", "-x", ";", "-o", out, "-e", events, "-p", str(pid)]
    return [*words, "--", "sleep", f"{COUNT_SECONDS:g}"]


def counted(text: str) -> dict[str, float]:
    """Calls per second, from the output of ``counting``. Source: perf-stat(1), "CSV FORMAT"."""
    found = {}
    for line in text.splitlines():
        count, _, event = (*line.split(";"), "", "", "")[:3]
        if event.startswith(CALL_PREFIX) and count.isdigit():
            found[event.removeprefix(CALL_PREFIX)] = int(count) / COUNT_SECONDS
    return found


def _calls() -> dict[str, int]:
    found = {}
    for call in CALLS:
        try:
            found[call] = int((_TRACING / "events" / "syscalls" / f"sys_enter_{call}" / "id").read_text("ascii"))
        except (OSError, ValueError):  # not mounted, no rights, or a kernel without these events
            continue
    return found


def _privileged() -> bool:
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
        line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
        held = int(line.split()[1], 16)
    except (OSError, StopIteration, ValueError, IndexError):
        return False
    return bool(held >> _CAP_SYS_ADMIN & 1 or held >> _CAP_PERFMON & 1)


def _number(name: str, *, default: int) -> int:
    try:
        return int((_SETTINGS / name).read_text("ascii"))
    except (OSError, ValueError):
        return default
