"""Linux's BPF, as needed for windows: programs for perf events and tracepoints, and where they put what they see.

No library and no compiler: a program is some dozen instructions, which the kernel verifies before it accepts them.
Programs of this kind only read; memory that they cannot read is skipped.

Source: bpf(2), include/uapi/linux/bpf.h, Documentation/bpf/ringbuf.rst, pidfd_getfd(2).
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALLS = {"x86_64": (321, 438), "aarch64": (280, 438)}
"""System call numbers of bpf and pidfd_getfd."""
_MAP_CREATE, _LOOK_UP, _NEXT_KEY, _PROG_LOAD, _RAW_OPEN = 0, 1, 4, 5, 17
_RING, _HASH = 27, 1
PERF_EVENT, RAW_TRACEPOINT = 7, 17
"""Kinds of programs. A raw tracepoint needs no tracefs; its event is the tracepoint's arguments, 64 bits each."""
_SET_BPF = 0x40042408
_LICENSE = b"GPL\0"
"""License that the helper for reading a process's memory requires."""
_ATTRIBUTES = 128
_BUSY, _LEFT = 1 << 31, 1 << 30
_HEAD = struct.Struct("<II")
_U64 = struct.Struct("<Q")
_INSTRUCTION = struct.Struct("<BBhi")
_LOG_BYTES = 1 << 16
_CALL, _LOAD_64, _IS_MAP = 0x85, 0x18, 1
LOAD, LOAD_32, STORE, STORE_32 = 0x79, 0x61, 0x7B, 0x63
MOVE, COPY, ADD, ADD_REGISTER, SUBTRACT_REGISTER, SHIFT, EXIT = 0xB7, 0xBF, 0x07, 0x0F, 0x1F, 0x67, 0x95
MULTIPLY_REGISTER, SHIFT_DOWN = 0x2F, 0x77
IF_EQUAL, IF_OTHER, IF_LESS, IF_SAME, IF_GREATER, IF_NEGATIVE, ALWAYS = 0x15, 0x55, 0xA5, 0x1D, 0x2D, 0xC5, 0x05
"""IF_GREATER compares two registers without a sign; IF_NEGATIVE is "less than a number", with a sign."""
TOP = 10
"""Register that points to the end of a program's stack."""


def _system_call(index: int, *arguments: int | ctypes.Array[ctypes.c_char]) -> int:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        raise OSError(f"BPF on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(
        ctypes.c_long(numbers[index]), *(ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    )
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(found)


def _bpf(command: int, attributes: bytes) -> int:
    return _system_call(0, command, ctypes.create_string_buffer(attributes, _ATTRIBUTES), _ATTRIBUTES)


class Assembler:
    """Assembles a program."""

    def __init__(self) -> None:
        """Begin an empty program."""
        self._code: list[bytes] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, int, int, int, str]] = []

    def add(self, code: int, to: int = 0, by: int = 0, offset: int = 0, value: int = 0) -> None:
        """Add an instruction."""
        self._code.append(_INSTRUCTION.pack(code, to | by << 4, offset, value))

    def call(self, helper: int) -> None:
        """Call one of the kernel's helpers: arguments in registers 1 to 5, result in 0."""
        self.add(_CALL, value=helper)

    def map(self, to: int, descriptor: int) -> None:
        """Load a map into a register."""
        self.add(_LOAD_64, to, _IS_MAP, value=descriptor)
        self.add(0)

    def number(self, to: int, value: int) -> None:
        """Load a 64-bit number into a register."""
        low, high = struct.unpack("<ii", _U64.pack(value))
        self.add(_LOAD_64, to, value=low)
        self.add(0, value=high)

    def label(self, name: str) -> None:
        """Define a jump target."""
        self._labels[name] = len(self._code)

    def jump(self, code: int, register: int, label: str, value: int = 0, by: int = 0) -> None:
        """Jump to a label if a register is (equal to, other than, less than) a value or another register."""
        self._jumps.append((len(self._code), code, register | by << 4, value, label))
        self._code.append(b"")

    def assembled(self) -> bytes:
        """The program."""
        code = list(self._code)
        for at, operation, registers, value, label in self._jumps:
            code[at] = _INSTRUCTION.pack(operation, registers, self._labels[label] - at - 1, value)
        return b"".join(code)


WHO_AT, PROCESS = -8, 4
"""Place on a program's stack of the thread's number, and offset from it of its process's."""
_WHO = 120


def only(code: Assembler, pid: int) -> None:
    """Store the numbers of thread and process at ``WHO_AT``; jump to "other" if it is another process."""
    space = Path("/proc/self/ns/pid").stat()
    code.number(1, space.st_dev)
    code.number(2, space.st_ino)
    code.add(COPY, 3, TOP)
    code.add(ADD, 3, value=WHO_AT)
    code.add(MOVE, 4, value=_U64.size)
    code.call(_WHO)
    code.jump(IF_OTHER, 0, "other")  # of another container
    code.add(LOAD_32, 1, TOP, WHO_AT + PROCESS)
    code.jump(IF_OTHER, 1, "other", pid)


class Ring:
    """The output of a program, in order."""

    def __init__(self, size: int) -> None:
        """Make a ring of ``size`` bytes, a power of two.

        Raises:
            OSError: no rights, no memory, or a kernel before 5.8.
        """
        self.fd = _bpf(_MAP_CREATE, struct.pack("<5I", _RING, 0, 0, size, 0))
        self._size = size
        try:
            self._read = mmap.mmap(self.fd, mmap.PAGESIZE)
            self._data = mmap.mmap(self.fd, mmap.PAGESIZE + 2 * size, prot=mmap.PROT_READ, offset=mmap.PAGESIZE)
        except (OSError, ValueError) as error:
            os.close(self.fd)
            raise OSError(f"its ring: {error}") from error

    def taken(self) -> Iterator[bytes]:
        """The output since the last call."""
        (at,) = _U64.unpack_from(self._read, 0)
        (end,) = _U64.unpack_from(self._data, 0)
        while at < end:
            place = mmap.PAGESIZE + at % self._size
            head, _ = _HEAD.unpack_from(self._data, place)
            if head & _BUSY:
                break
            size = head & ~_LEFT
            if not head & _LEFT:
                yield self._data[place + _HEAD.size : place + _HEAD.size + size]
            at += -(-(size + _HEAD.size) // 8) * 8
            _U64.pack_into(self._read, 0, at)

    def close(self) -> None:
        """Release the ring."""
        self._read.close()
        self._data.close()
        os.close(self.fd)


class HashMap:
    """A table that programs fill and we read."""

    def __init__(self, key: int, value: int, entries: int) -> None:
        """Make a table of at most ``entries``; ``key`` and ``value``: their sizes in bytes.

        Raises:
            OSError: no rights, or no memory.
        """
        self._key, self._value = key, value
        self.fd = _bpf(_MAP_CREATE, struct.pack("<5I", _HASH, key, value, entries, 0))

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Its entries at the moment; no program should fill it meanwhile."""
        key, after = ctypes.create_string_buffer(self._key), ctypes.create_string_buffer(self._key)
        value = ctypes.create_string_buffer(self._value)
        at = 0
        while self._asked(_NEXT_KEY, at, ctypes.addressof(after)):
            key.raw = after.raw
            at = ctypes.addressof(key)
            if self._asked(_LOOK_UP, at, ctypes.addressof(value)):
                yield key.raw, value.raw

    def _asked(self, command: int, key: int, into: int) -> bool:
        try:
            _bpf(command, struct.pack("<IIQQQ", self.fd, 0, key, into, 0))
        except FileNotFoundError:
            return False
        return True

    def close(self) -> None:
        """Release the table."""
        os.close(self.fd)


class Program:
    """A program that runs at events. At samples of perf events it decides whether the sample passes."""

    def __init__(self, code: bytes, kind: int = PERF_EVENT) -> None:
        """Load ``code``; ``kind``: PERF_EVENT or RAW_TRACEPOINT.

        Raises:
            OSError: no rights, or the verifier rejects it; with its last message.
        """
        text, words = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(_LICENSE)
        log = ctypes.create_string_buffer(_LOG_BYTES)
        places = ctypes.addressof(text), ctypes.addressof(words)
        asked = struct.pack("<II2Q", kind, len(code) // _INSTRUCTION.size, *places)
        try:
            self.fd = _bpf(_PROG_LOAD, asked + struct.pack("<IIQ", 0, 0, 0))
        except OSError as error:
            try:
                self.fd = _bpf(_PROG_LOAD, asked + struct.pack("<IIQ", 1, _LOG_BYTES, ctypes.addressof(log)))
            except OSError:
                last = log.value.decode("ascii", "replace").strip().rpartition("\n")[2][-200:]
                raise OSError(error.errno, f"{error.strerror} {last}".strip()) from None

    def attach(self, pid: int) -> tuple[set[int], set[int]]:
        """Run at the samples of the perf events that one of our processes has open.

        Return their descriptors, and those at which it now runs: tracepoints need other programs.

        Raises:
            OSError: the process has gone, or is not ours.
        """
        found, attached = set(), set()
        whose = os.pidfd_open(pid)
        try:
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                number = int(entry.name)
                try:
                    if os.readlink(entry) != "anon_inode:[perf_event]":
                        continue
                    own = _system_call(1, whose, number, 0)
                except OSError:  # closed in the meantime
                    continue
                found.add(number)
                try:
                    fcntl.ioctl(own, _SET_BPF, self.fd)
                    attached.add(number)
                except OSError:  # a tracepoint, or one without samples
                    continue
                finally:
                    os.close(own)
        finally:
            os.close(whose)
        return found, attached

    def run_at(self, tracepoint: str) -> int:
        """Run at a tracepoint, on all CPUs, until the descriptor that is returned is closed.

        Raises:
            OSError: no rights, or no such tracepoint.
        """
        name = ctypes.create_string_buffer(tracepoint.encode("ascii"))
        return _bpf(_RAW_OPEN, struct.pack("<QI", ctypes.addressof(name), self.fd))

    def close(self) -> None:
        """Release the program; events that run it keep it."""
        os.close(self.fd)
