"""The code of a process: the file and function of an address, and how to unwind it.

Files are opened as the process sees them, each once, and only those on a stack. A file's functions are read when the
first name in it is requested; nothing of a file outlives the look.
"""

from __future__ import annotations

import bisect
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepscope.native.formats.eh_frame import UnwindTable
from stepscope.native.formats.elf import ElfFile
from stepscope.native.formats.unwind import Code
from stepscope.readers.demangle import demangle
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.native.formats.perf_data import Mapping

VDSO = "[vdso]"
_GENERATED = ("//anon", "[anon", "/memfd:", "/dev/zero", "anon_inode:")
PYTHON = re.compile(r"(?:lib)?python3\.(\d+).*")
"""Pattern of files that may contain CPython."""
_LOOP = "_PyEval_EvalFrameDefault"
"""CPython's loop; compilers split parts from it."""
_CALL_BYTES = 7
"""Length of the longest indirect call of x86-64, without its prefix."""
_OPCODE, _EXTENSION = 0xFF, 2
_OF_REGISTER, _SCALED, _NO_BASE = 0b11, 0b100, 0b101
"""Fields of a call's second byte: the mode without memory, the value followed by a scale-index byte, the value followed
by an address."""
_DISPLACEMENTS = {0b00: 0, 0b01: 1, 0b10: 4, 0b11: 0}
"""Bytes of the displacement, by the mode in a call's second byte."""


class Module:
    """One file."""

    def __init__(self, elf: ElfFile, name: str) -> None:
        """Wrap a file; ``name``: its path in the process's own file system."""
        self.elf = elf
        self.name = name
        self.problem = ""

    @functools.cached_property
    def unwind(self) -> UnwindTable | None:
        """Its unwind table."""
        try:
            return UnwindTable(self.elf)
        except FormatError as error:
            self.problem = str(error)
            return None

    @functools.cached_property
    def python(self) -> tuple[int, int] | None:
        """The version of CPython in this file; None if there is none."""
        found = PYTHON.fullmatch(self.name.rpartition("/")[2])
        return (3, int(found[1])) if found is not None and self.loops else None

    @functools.cached_property
    def loops(self) -> list[tuple[int, int]]:
        """(address, size) of CPython's loop."""
        return self.elf.functions_named(_LOOP)

    def names(self, addresses: Iterable[int], debug: ElfFile | None = None) -> list[str]:
        """The demangled function of each address; "" if no symbol covers it.

        ``debug``: the file that holds the symbols that were stripped from this one.
        """
        wanted = np.fromiter(addresses, np.int64)
        names = [""] * len(wanted)
        for elf in (self.elf, debug):
            if elf is None or all(names):
                continue
            functions = elf.functions()
            for i, at in enumerate(functions.find(wanted)):
                if at >= 0 and not names[i]:
                    names[i] = demangle(elf.name_at(int(functions.name[at])))
        return names


class Range(NamedTuple):
    """A part of an address space."""

    start: int
    end: int
    offset: int
    """Offset of ``start`` in the mapped file."""
    name: str


class Ranges:
    """Parts of an address space without overlap: later additions replace earlier ones."""

    def __init__(self) -> None:
        """Begin empty."""
        self._ranges: list[Range] = []
        self._starts: list[int] = []

    def add(self, new: Range) -> None:
        """Put a part over the existing ones."""
        first = bisect.bisect_right(self._starts, new.start)
        if first and self._ranges[first - 1].end > new.start:
            first -= 1
        last = first
        parts = [new]
        while last < len(self._ranges) and self._ranges[last].start < new.end:
            old = self._ranges[last]
            if old.start < new.start:
                parts.append(old._replace(end=new.start))
            if old.end > new.end:
                parts.append(Range(new.end, old.end, old.offset + new.end - old.start, old.name))
            last += 1
        parts.sort(key=lambda part: part.start)
        self._ranges[first:last] = parts
        self._starts[first:last] = [part.start for part in parts]

    def find(self, address: int) -> Range | None:
        """The part that contains an address."""
        at = bisect.bisect_right(self._starts, address) - 1
        return self._ranges[at] if at >= 0 and address < self._ranges[at].end else None


class AddressSpace:
    """The executable mappings of one process."""

    def __init__(self, root: str, mappings: Iterable[Mapping]) -> None:
        """Store the mappings. ``root``: root of the process's file system; ``mappings``: in time order, data mappings
        are ignored.
        """
        self._root = root
        self._modules: dict[str, Module | None] = {}
        self._ranges = Ranges()
        self._codes: dict[int, Code | None] = {}
        self.unreadable: dict[str, str] = {}
        """Files that could not be read, with the reason."""
        self.python: tuple[Module, int] | None = None
        """CPython's file and its load offset; None: it was on no stack."""
        for mapping in mappings:
            if not mapping.data:
                self._ranges.add(Range(mapping.start, mapping.start + mapping.size, mapping.offset, mapping.name))

    def module_of(self, address: int) -> tuple[Module | None, int, str]:
        """(file, the file's own address, name of the mapping); no file if the mapping has none, or an unreadable one;
        "" if nothing is mapped.
        """
        found = self._ranges.find(address)
        if found is None:
            return None, address, ""
        if found.name.startswith(_GENERATED):
            return None, address, found.name
        module = self._module(found.name)
        if module is None:
            return None, address, found.name
        own = module.elf.address_of(address - found.start + found.offset)
        return (module, own, found.name) if own is not None else (None, address, found.name)

    def is_generated(self, address: int) -> bool:
        """Whether an address is executable memory outside any file."""
        found = self._ranges.find(address)
        return found is not None and found.name.startswith(_GENERATED)

    def code(self, address: int) -> Code | None:
        """See ``native.formats.unwind.Space``."""
        if address not in self._codes:
            self._codes[address] = self._code(address)
        return self._codes[address]

    def _code(self, address: int) -> Code | None:
        if self.is_generated(address):
            return Code(generated=True, row=None)
        module, own, name = self.module_of(address)
        if not name:
            return None
        unwind = module.unwind if module is not None else None
        loop = module is not None and module.python is not None and any(0 <= own - at < n for at, n in module.loops)
        if loop and module is not None:
            self.python = module, address - own
        return Code(generated=False, row=unwind.row(own) if unwind is not None else None, interpreter=loop)

    def called_from(self, address: int) -> bool:
        """Whether an indirect call of a file's code ends at an address: only such calls reach generated code."""
        module, own, _ = self.module_of(address)
        return module is not None and ends_in_indirect_call(module.elf.code_at(own - _CALL_BYTES, _CALL_BYTES))

    def debug_file(self, module: Module) -> ElfFile | None:
        """The separate file with a library's symbols, if it is installed (libc6-dbg and similar)."""
        build_id = module.elf.build_id
        if not build_id:
            return None
        try:
            return ElfFile.open(f"{self._root}/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
        except (OSError, FormatError):
            return None

    def _module(self, name: str) -> Module | None:
        if name not in self._modules:
            try:
                elf = ElfFile(_own_vdso(), VDSO) if name == VDSO else ElfFile.open(self._root + name)
                self._modules[name] = Module(elf, name)
            except (OSError, FormatError) as error:
                self.unreadable[name] = getattr(error, "strerror", None) or str(error)
                self._modules[name] = None
        return self._modules[name]


def ends_in_indirect_call(code: bytes) -> bool:
    """Whether bytes end in a ``call`` through a register or memory (``ff /2``). Source: Intel SDM, CALL; 2.1.5."""
    return any(len(code) >= back and _call_bytes(code[-back:]) == back for back in (2, 3, 4, 6, 7))


def _call_bytes(code: bytes) -> int:
    """The length of the indirect call at the beginning of bytes; 0 if there is none."""
    if code[0] != _OPCODE or code[1] >> 3 & 7 != _EXTENSION:
        return 0
    mode, low = code[1] >> 6, code[1] & 7
    scaled = mode != _OF_REGISTER and low == _SCALED
    base = code[2] & 7 if scaled and code[2:] else low
    absolute = mode == 0 and base == _NO_BASE
    return 2 + scaled + (4 if absolute else _DISPLACEMENTS[mode])


def _own_vdso() -> bytes:
    """The vdso, which is mapped into every process, from our own memory.

    Raises:
        OSError: there is none, or it cannot be read.
    """
    for line in Path("/proc/self/maps").read_text("ascii", "replace").splitlines():
        if line.endswith(VDSO):
            start, end = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
            with Path("/proc/self/mem").open("rb", buffering=0) as memory:
                memory.seek(start)
                return memory.read(end - start)
    raise OSError("no vdso is mapped")
