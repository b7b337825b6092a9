"""Linux's BPF, as needed for a window of native stacks: a program for perf events and its ring.

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
_MAP_CREATE, _PROG_LOAD = 0, 5
_RING = 27
_PERF_EVENT = 7
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
LOAD, LOAD_32, STORE = 0x79, 0x61, 0x7B
MOVE, COPY, ADD, ADD_REGISTER, SHIFT, EXIT = 0xB7, 0xBF, 0x07, 0x0F, 0x67, 0x95
IF_EQUAL, IF_OTHER, IF_LESS, IF_SAME, ALWAYS = 0x15, 0x55, 0xA5, 0x1D, 0x05
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


class Program:
    """A program that runs at each sample of perf events. It may write output, and decides whether the sample passes."""

    def __init__(self, code: bytes) -> None:
        """Load ``code``.

        Raises:
            OSError: no rights, or the verifier rejects it; with its last message.
        """
        text, words = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(_LICENSE)
        log = ctypes.create_string_buffer(_LOG_BYTES)
        places = ctypes.addressof(text), ctypes.addressof(words)
        asked = struct.pack("<II2Q", _PERF_EVENT, len(code) // _INSTRUCTION.size, *places)
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

    def close(self) -> None:
        """Release the program; events that run it keep it."""
        os.close(self.fd)
