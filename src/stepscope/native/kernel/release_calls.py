"""The calls by which a process returns memory, one by one, by a BPF program where tracefs does not show them to perf.

The program runs where a system call begins, as that of ``system_call_program``, and puts those that are asked for into
a ring, with their arguments. It needs root. Stacks are in none of them: a program copies no stack.

Source: include/trace/events/syscalls.h (sys_enter: registers, number), bpf-helpers(7).
"""

from __future__ import annotations

import os
import platform
import struct
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, NamedTuple

from stepscope.native.kernel import bpf
from stepscope.native.kernel.bpf import (
    ADD,
    ALWAYS,
    COPY,
    EXIT,
    IF_EQUAL,
    LOAD,
    LOAD_32,
    MOVE,
    STORE,
    TOP,
    WHO_AT,
    Assembler,
    only,
)
from stepscope.native.kernel.system_call_names import names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MAX_CALLS = 200_000
"""As many as a window keeps events of: one that has seen so many ends early."""
_ROW = struct.Struct("<6Q")
"""When (CLOCK_MONOTONIC, ns), of which thread, the call's number, its first three arguments."""
_RING_BYTES = 4 << 20
_RING_ROWS = _RING_BYTES // (_ROW.size + 8) - 1
"""So many between two looks fill the ring, 75,000; each has a head of 8 bytes."""
_ARGUMENTS_AT = {"x86_64": (112, 104, 96), "aarch64": (0, 8, 16)}
"""Offsets of a call's arguments in the registers."""
_REGISTERS_AT, _NUMBER_AT = 0, 8
"""Offsets in the event."""
_EVENT, _OUT = 6, 7
"""Registers that calls preserve."""
_NOW, _READ, _RESERVE, _SUBMIT = 5, 113, 131, 132
_NOBODY_IS_WOKEN = 1


class ReleaseCall(NamedTuple):
    """A call at its begin."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    native: int
    """Thread id of the kernel."""
    name: str
    arguments: tuple[int, int, int]


class ReleaseCalls:
    """Follows the calls of a process."""

    def __init__(self, pid: int, calls: Collection[str]) -> None:
        """Follow the calls with these names from now on.

        Raises:
            OSError: no rights, no BPF, or another processor.
        """
        machine = platform.machine()
        self._names = {number: name for number, name in names(machine).items() if name in calls}
        if machine not in _ARGUMENTS_AT:
            raise OSError(f"BPF on {machine}")
        self._found: list[bytes] = []
        with ExitStack() as held:
            self._ring = held.enter_context(closing(bpf.Ring(_RING_BYTES)))
            code = _program(pid, self._ring.fd, sorted(self._names), _ARGUMENTS_AT[machine])
            program = held.enter_context(closing(bpf.Program(code, bpf.RAW_TRACEPOINT)))
            held.callback(os.close, program.run_at("sys_enter"))
            self._held = held.pop_all()
        self.full = False
        """Whether there were too many of them: later ones may be missing."""

    def update(self) -> None:
        """Take what there is, at least once a second."""
        new = list(self._ring.taken())
        self._found += new
        self.full |= len(self._found) >= MAX_CALLS or len(new) >= _RING_ROWS

    def between(self, began_ns: int, ended_ns: int) -> list[ReleaseCall]:
        """Those that began in this time (CLOCK_MONOTONIC)."""
        rows = (_ROW.unpack(row) for row in self._found)
        return [
            ReleaseCall(at, native, self._names[number], (first, second, third))
            for at, native, number, first, second, third in rows
            if began_ns <= at <= ended_ns
        ]

    def close(self) -> None:
        """Release everything."""
        self._held.close()


def _program(pid: int, ring: int, numbers: Sequence[int], arguments_at: tuple[int, ...]) -> bytes:
    code = Assembler()
    code.add(COPY, _EVENT, 1)
    code.add(LOAD, 1, _EVENT, _NUMBER_AT)
    for number in numbers:
        code.jump(IF_EQUAL, 1, "asked for", number)
    code.jump(ALWAYS, 0, "other")
    code.label("asked for")
    only(code, pid)
    code.map(1, ring)
    code.add(MOVE, 2, value=_ROW.size)
    code.add(MOVE, 3)
    code.call(_RESERVE)
    code.jump(IF_EQUAL, 0, "other")  # the ring is full
    code.add(COPY, _OUT, 0)
    code.call(_NOW)
    code.add(STORE, _OUT, 0)
    code.add(LOAD_32, 1, TOP, WHO_AT)
    code.add(STORE, _OUT, 1, 8)
    code.add(LOAD, 1, _EVENT, _NUMBER_AT)
    code.add(STORE, _OUT, 1, 16)
    for index, offset in enumerate(arguments_at):
        code.add(COPY, 1, _OUT)
        code.add(ADD, 1, value=24 + 8 * index)
        code.add(MOVE, 2, value=8)
        code.add(LOAD, 3, _EVENT, _REGISTERS_AT)
        code.add(ADD, 3, value=offset)
        code.call(_READ)
    code.add(COPY, 1, _OUT)
    code.add(MOVE, 2, value=_NOBODY_IS_WOKEN)
    code.call(_SUBMIT)
    code.label("other")
    code.add(MOVE, 0)
    code.add(EXIT)
    return code.assembled()
