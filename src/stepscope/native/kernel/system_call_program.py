"""BPF programs that count a process's system calls: by thread, call and descriptor, with their time.

One program runs where a call begins and notes when; the other where it ends, and adds it up. Nothing is copied out for
each call: the tables are read once, at the end.

Source: include/trace/events/syscalls.h (sys_enter: registers, number; sys_exit: registers, result), struct pt_regs of
arch/x86/include/asm/ptrace.h and arch/arm64/include/uapi/asm/ptrace.h; bpf-helpers(7).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stepscope.native.kernel.bpf import (
    ADD,
    ADD_REGISTER,
    ALWAYS,
    COPY,
    EXIT,
    IF_EQUAL,
    IF_GREATER,
    IF_NEGATIVE,
    IF_OTHER,
    LOAD,
    LOAD_32,
    MOVE,
    STORE,
    STORE_32,
    SUBTRACT_REGISTER,
    TOP,
    WHO_AT,
    Assembler,
    only,
)

if TYPE_CHECKING:
    from collections.abc import Collection

BEGUN_KEY, BEGUN = struct.Struct("<I"), struct.Struct("<QII")
"""A call that has begun: of a thread; when (CLOCK_MONOTONIC, ns), its number, its descriptor."""
TOTAL_KEY, TOTAL = struct.Struct("<IIII"), struct.Struct("<5Q")
"""Calls that have ended: of a thread, by number and descriptor; how many, their time (ns), the longest (ns), what they
returned where that is positive, how many failed."""
NO_DESCRIPTOR = 0xFFFFFFFF
_REGISTERS_AT, _NUMBER_AT, _RESULT_AT = 0, 8, 8
"""Offsets in the events."""
_FIRST_ARGUMENT_AT = {"x86_64": 112, "aarch64": 0}
"""Offset of a call's first argument in the registers."""
_LOOK_UP, _UPDATE, _DELETE, _NOW, _READ = 1, 2, 3, 5, 113
_EVENT, _FOUND, _SINCE, _TOOK = 6, 7, 8, 9
"""Registers that calls preserve."""
_KEY = WHO_AT - TOTAL_KEY.size
_ZEROS = _KEY - TOTAL.size
_COUNT, _TIME, _LONGEST, _GIVEN, _FAILED = range(0, TOTAL.size, 8)


def begins(pid: int, begun: int, with_descriptor: Collection[int], machine: str) -> bytes:
    """The instructions for the event of a call that begins.

    Args:
        pid: the process.
        begun: descriptor of the table of calls that have begun.
        with_descriptor: numbers of the calls whose first argument is a descriptor.
        machine: x86_64 or aarch64.
    """
    code = Assembler()
    code.add(COPY, _EVENT, 1)
    only(code, pid)
    code.call(_NOW)
    at = WHO_AT - BEGUN.size
    code.add(STORE, TOP, 0, at)
    code.add(LOAD, 1, _EVENT, _NUMBER_AT)
    code.add(STORE_32, TOP, 1, at + 8)
    code.add(MOVE, 2, value=-1)
    code.add(STORE_32, TOP, 2, at + 12)
    for number in sorted(with_descriptor):
        code.jump(IF_EQUAL, 1, "descriptor", number)
    code.jump(ALWAYS, 0, "noted")
    code.label("descriptor")
    _address(code, 1, at + 12)
    code.add(MOVE, 2, value=4)
    code.add(LOAD, 3, _EVENT, _REGISTERS_AT)
    code.add(ADD, 3, value=_FIRST_ARGUMENT_AT[machine])
    code.call(_READ)
    code.label("noted")
    code.map(1, begun)
    _address(code, 2, WHO_AT)
    _address(code, 3, at)
    code.add(MOVE, 4)
    code.call(_UPDATE)
    _end(code)
    return code.assembled()


def ends(pid: int, begun: int, totals: int) -> bytes:
    """The instructions for the event of a call that ends. ``begun``, ``totals``: descriptors of the tables."""
    code = Assembler()
    code.add(COPY, _EVENT, 1)
    only(code, pid)
    code.map(1, begun)
    _address(code, 2, WHO_AT)
    code.call(_LOOK_UP)
    code.jump(IF_EQUAL, 0, "other")  # it began before us
    code.add(COPY, _FOUND, 0)
    code.add(LOAD, _SINCE, _FOUND)
    code.add(LOAD_32, 1, TOP, WHO_AT)
    code.add(STORE_32, TOP, 1, _KEY)
    for offset in (8, 12):
        code.add(LOAD_32, 1, _FOUND, offset)
        code.add(STORE_32, TOP, 1, _KEY + offset - 4)
    code.add(MOVE, 1)
    code.add(STORE_32, TOP, 1, _KEY + 12)
    code.call(_NOW)
    code.add(COPY, _TOOK, 0)
    code.add(SUBTRACT_REGISTER, _TOOK, _SINCE)
    code.map(1, begun)
    _address(code, 2, WHO_AT)
    code.call(_DELETE)
    _find(code, totals)
    code.jump(IF_OTHER, 0, "known")
    code.add(MOVE, 1)
    for offset in range(0, TOTAL.size, 8):
        code.add(STORE, TOP, 1, _ZEROS + offset)
    code.map(1, totals)
    _address(code, 2, _KEY)
    _address(code, 3, _ZEROS)
    code.add(MOVE, 4)
    code.call(_UPDATE)
    _find(code, totals)
    code.jump(IF_EQUAL, 0, "other")  # the table is full
    code.label("known")
    _add_up(code)
    _end(code)
    return code.assembled()


def _find(code: Assembler, totals: int) -> None:
    """Look the call's entry up, into register 0."""
    code.map(1, totals)
    _address(code, 2, _KEY)
    code.call(_LOOK_UP)


def _add_up(code: Assembler) -> None:
    """Add the call to the entry in register 0."""
    _more(code, _COUNT)
    code.add(LOAD, 1, 0, _TIME)
    code.add(ADD_REGISTER, 1, _TOOK)
    code.add(STORE, 0, 1, _TIME)
    code.add(LOAD, 1, 0, _LONGEST)
    code.jump(IF_GREATER, 1, "shorter", by=_TOOK)
    code.add(STORE, 0, _TOOK, _LONGEST)
    code.label("shorter")
    code.add(LOAD, 2, _EVENT, _RESULT_AT)
    code.jump(IF_NEGATIVE, 2, "failed")
    code.add(LOAD, 1, 0, _GIVEN)
    code.add(ADD_REGISTER, 1, 2)
    code.add(STORE, 0, 1, _GIVEN)
    code.jump(ALWAYS, 0, "other")
    code.label("failed")
    _more(code, _FAILED)


def _more(code: Assembler, offset: int) -> None:
    code.add(LOAD, 1, 0, offset)
    code.add(ADD, 1, value=1)
    code.add(STORE, 0, 1, offset)


def _address(code: Assembler, register: int, place: int) -> None:
    """The address of a place on the program's stack."""
    code.add(COPY, register, TOP)
    code.add(ADD, register, value=place)


def _end(code: Assembler) -> None:
    code.label("other")
    code.add(MOVE, 0)
    code.add(EXIT)
