"""CPython's code objects in the memory of a process, read from outside."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepscope.native.formats import python_code
from stepscope.native.formats.python_code import LAYOUTS, TYPE_AT
from stepscope.native.kernel.realtime_section import RealtimeSection

if TYPE_CHECKING:
    from stepscope.native.formats.python_code import PythonCode
    from stepscope.native.memory.address_space import AddressSpace

_TYPE = "PyCode_Type"
_PAGE = 4096
_PAGES_BACK = 8
"""Number of pages before an instruction that are searched for its code object."""
_WORD = 8
_U64 = struct.Struct("<Q")
_LOWEST, _HIGHEST = 1 << 16, 1 << 47


class Memory:
    """The memory of a process, read in pages, each once. It is opened while the process runs and never stops it."""

    def __init__(self, pid: int) -> None:
        """Open the memory; if that is not allowed, nothing is read."""
        self.pid = pid
        self.problem = ""
        """Reason why it cannot be read."""
        self.folder = "/"
        """Working directory of the process."""
        self._pages: dict[int, bytes] = {}
        self._realtime = RealtimeSection()
        self._descriptor = -1
        try:
            self._descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            self.folder = str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError as error:
            self.problem = error.strerror or str(error)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def page(self, number: int) -> bytes:
        """A page; empty if it is missing, or the process has gone."""
        known = self._pages.get(number)
        if known is None:
            try:
                with self._realtime:
                    known = os.pread(self._descriptor, _PAGE, number * _PAGE)
            except (OSError, OverflowError):
                known = b""
            self._pages[number] = known
        return known

    def read(self, address: int, size: int) -> bytes:
        """Read bytes; fewer if a page is missing."""
        parts = []
        while size > 0 and _LOWEST <= address < _HIGHEST:
            number, at = divmod(address, _PAGE)
            part = self.page(number)[at : at + size]
            if not part:
                break
            parts.append(part)
            address, size = address + len(part), size - len(part)
        return b"".join(parts)


class Codes:
    """The code objects of a process."""

    def __init__(self, memory: Memory, layout: python_code.CodeOffsets, code_type: int) -> None:
        self.inside = layout.inside
        self._memory = memory
        self._layout = layout
        self._type = code_type
        self._names: dict[int, frozenset[str]] = {}
        self._starts: dict[int, list[int]] = {}
        self._codes: dict[int, PythonCode | None] = {}
        self._found: dict[int, PythonCode | None] = {}

    def at(self, address: int) -> PythonCode | None:
        """The code object at an address."""
        if address not in self._codes:
            word = self._memory.read(address + TYPE_AT, _WORD) if address % _WORD == 0 else b""
            is_one = len(word) == _WORD and _U64.unpack(word)[0] == self._type
            code = python_code.read_code(self._memory.read, address, self._layout) if is_one else None
            self._codes[address] = code._replace(file=self._absolute(code.file)) if code is not None else None
        return self._codes[address]

    def _absolute(self, file: str) -> str:
        return file if file.startswith(("/", "<")) else os.path.normpath(f"{self._memory.folder}/{file}")

    def runs(self, frame: int) -> int:
        """The address of the code object of a frame; 0 if there cannot be one."""
        word = self._memory.read(frame + self._layout.frame_code, _WORD) if frame % _WORD == 0 else b""
        return int(_U64.unpack(word)[0]) if len(word) == _WORD else 0

    def caller(self, frame: int, code: PythonCode | None) -> tuple[int, PythonCode | None] | None:
        """The frame now in memory as the caller of one, and its function; None if there is none, or if the frame is now
        of another function.
        """
        if code is not None and self.runs(frame) != code.address:
            return None
        word = self._memory.read(frame + self._layout.frame_caller, _WORD)
        at = int(_U64.unpack(word)[0]) if len(word) == _WORD else 0
        running = self.runs(at) if at else 0
        return (at, self.at(running)) if running else None

    def names(self, code: PythonCode) -> frozenset[str]:
        """The globals and attributes that a function names."""
        if code.address not in self._names:
            self._names[code.address] = python_code.names_used(self._memory.read, code, self._layout)
        return self._names[code.address]

    def around(self, address: int) -> PythonCode | None:
        """The code object whose instructions contain an address."""
        if address not in self._found:
            self._found[address] = self._around(address) if _LOWEST <= address < _HIGHEST and address % 2 == 0 else None
        return self._found[address]

    def _around(self, address: int) -> PythonCode | None:
        last = address // _PAGE
        for page in range(last, last - _PAGES_BACK, -1):
            for start in reversed(self._in_page(page)):
                code = self.at(start) if start < address else None
                if code is not None:
                    return code if code.start <= address <= code.start + code.size else None
        return None

    def _in_page(self, number: int) -> list[int]:
        """Possible addresses of code objects whose type is in a page."""
        if number not in self._starts:
            words = np.frombuffer(self._memory.page(number).ljust(_PAGE, b"\0"), "<u8")
            at = np.flatnonzero(words == self._type) * _WORD + number * _PAGE - TYPE_AT
            self._starts[number] = at.tolist()
        return self._starts[number]


def codes_of(space: AddressSpace, memory: Memory) -> Codes | None:
    """The code objects of a process whose stacks were walked in ``space``; None without a known CPython."""
    if space.python is None:
        return None
    module, bias = space.python
    layout, code_type = LAYOUTS.get(module.python or (0, 0)), module.elf.address_named(_TYPE)
    return None if layout is None or code_type is None else Codes(memory, layout, code_type + bias)
