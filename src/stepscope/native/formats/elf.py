"""ELF files as columns: functions by address, exports and dependencies, build id and section positions.

Only 64-bit little-endian files, which TensorFlow requires. Names are decoded on request: TensorFlow's library has 1.2
million symbols in 788 MB, of which a profile names some hundred.

Source: System V ABI, chapters 4 and 5 (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html); build id: GNU
note of type 3.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.records import I64

_MAGIC = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_WORDS = 3
"""Words of a symbol: name (32 bits), information (8), visibility (8), section (16); address; size."""
_DYNAMIC = np.dtype([("tag", "<i8"), ("value", "<u8")])
_PT_LOAD, _PF_X = 1, 1
_SHT_SYMTAB, _SHT_STRTAB, _SHT_DYNAMIC, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 3, 6, 7, 8, 11
_DT_NEEDED, _DT_SONAME = 1, 14
_STT_FUNC, _STT_IFUNC = 2, 10
_NOTE_BUILD_ID = 3
_MAX_SECTIONS = 100_000
_MAX_NAME = 16_384


class Section(Struct, frozen=True, kw_only=True):
    """Position of a section in memory, relative to the file's own addresses, and in the file. Bytes."""

    kind: int
    address: int
    offset: int
    size: int
    link: int


class Segment(Struct, frozen=True, kw_only=True):
    """A part of the file that is mapped. Bytes."""

    address: int
    offset: int
    size: int
    executable: bool


class Functions(Struct, frozen=True, kw_only=True):
    """Functions sorted by address, one for each address. int64[function]; ``name`` is an offset into the file."""

    address: I64
    size: I64
    name: I64

    def find(self, addresses: I64) -> I64:
        """The function that contains each address, -1 for none. int64[address] to int64[address]."""
        at = np.searchsorted(self.address, addresses, side="right") - 1
        inside = np.maximum(at, 0)
        if len(self.address) == 0:
            return np.full(len(addresses), -1, np.int64)
        known = (at >= 0) & (addresses < self.address[inside] + self.size[inside])
        return np.where(known, at, -1)


class ElfFile:
    """One file, mapped into memory; ``close`` when done."""

    def __init__(self, data: bytes | mmap.mmap, where: str) -> None:
        """Read its headers.

        Raises:
            FormatError: it is not a 64-bit little-endian ELF file, or it is cut.
        """
        self.where = where
        self._data = data
        if data[: len(_MAGIC)] != _MAGIC:
            raise FormatError(f"{where}: not a 64-bit little-endian ELF file")
        header = self._unpack(_HEADER, 0)
        self.machine: int = header[2]
        segment_offset, section_offset = header[5], header[6]
        segments, sections, names = header[10], header[12], header[13]
        self.segments = self._segments(segment_offset, segments)
        self._raw = self._sections(section_offset, sections)
        self.sections: Mapping[str, Section] = self._named(names)

    @classmethod
    def open(cls, path: str | Path) -> ElfFile:
        """Map the file at ``path``.

        Raises:
            FormatError: see ``__init__``.
            OSError: it cannot be read.
        """
        with Path(path).open("rb") as stream:
            try:
                data = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
            except ValueError as error:  # an empty file
                raise FormatError(f"{path}: {error}") from error
        try:
            return cls(data, str(path))
        except FormatError:
            data.close()
            raise

    def close(self) -> None:
        """Unmap the file; arrays of ``functions`` stay valid, names can no longer be read. A view that is still in use,
        be it by an exception on its way, keeps the map as long as it lives.
        """
        if isinstance(self._data, mmap.mmap):
            with contextlib.suppress(BufferError):
                self._data.close()

    def _unpack(self, what: struct.Struct, offset: int) -> tuple[int, ...]:
        try:
            return what.unpack_from(self._data, offset)
        except (struct.error, OverflowError) as error:
            raise FormatError(f"{self.where}: ends before byte {offset + what.size}: {error}") from error

    def _segments(self, offset: int, count: int) -> tuple[Segment, ...]:
        found = []
        for i in range(count):
            kind, flags, at, address, _, size, _, _ = self._unpack(_SEGMENT, offset + i * _SEGMENT.size)
            if kind == _PT_LOAD:
                found.append(Segment(address=address, offset=at, size=size, executable=bool(flags & _PF_X)))
        return tuple(found)

    def _sections(self, offset: int, count: int) -> list[tuple[int, Section]]:
        """(offset of its name, section) of each section, in the file's order."""
        found = []
        for i in range(min(count, _MAX_SECTIONS)):
            name, kind, _, address, at, size, link, _, _, _ = self._unpack(_SECTION, offset + i * _SECTION.size)
            if kind != _SHT_NOBITS and at + size > len(self._data):
                raise FormatError(f"{self.where}: a section ends at byte {at + size}; the file has {len(self._data)}")
            found.append((name, Section(kind=kind, address=address, offset=at, size=size, link=link)))
        return found

    def _named(self, index: int) -> dict[str, Section]:
        if not 0 <= index < len(self._raw):
            return {}
        base = self._raw[index][1].offset
        return {self.name_at(base + name): section for name, section in self._raw}

    def name_at(self, offset: int) -> str:
        """The text that begins at a byte of the file; empty behind its end."""
        if offset >= len(self._data):
            return ""
        end = self._data.find(b"\0", offset, offset + _MAX_NAME)
        return self._data[offset : end if end >= 0 else offset].decode("utf-8", "replace")

    def bytes_of(self, section: Section) -> bytes:
        """The content of a section."""
        return self._data[section.offset : section.offset + section.size]

    def view_of(self, section: Section) -> memoryview:
        """The content of a section without a copy; the file cannot be closed while it is in use."""
        return memoryview(self._data)[section.offset : section.offset + section.size]

    def code_at(self, address: int, size: int) -> bytes:
        """Bytes of a mapped segment; fewer, or none, if the file holds fewer."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.size:
                at = segment.offset + address - segment.address
                return self._data[at : min(at + size, segment.offset + segment.size)]
        return b""

    def address_of(self, offset: int) -> int | None:
        """The file's own address of a mapped byte; None for one that is not mapped."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                return segment.address + offset - segment.offset
        return None

    @property
    def build_id(self) -> str:
        """The build id in hex; empty if there is none."""
        note = self.sections.get(".note.gnu.build-id")
        if note is None or note.size < struct.calcsize("<III"):
            return ""
        data = self.bytes_of(note)
        name_size, size, kind = struct.unpack_from("<III", data)
        start = 12 + (name_size + 3) // 4 * 4
        return data[start : start + size].hex() if kind == _NOTE_BUILD_ID else ""

    def _symbols(self, kind: int) -> tuple[np.ndarray, Section] | None:
        """A symbol table, uint64[symbol, 3], and the position of its names."""
        for _, section in self._raw:
            if section.kind == kind and section.link < len(self._raw):
                count = section.size // (8 * _SYMBOL_WORDS)
                words = np.frombuffer(self._data, "<u8", count * _SYMBOL_WORDS, section.offset)
                return words.reshape(count, _SYMBOL_WORDS), self._raw[section.link][1]
        return None

    def functions(self) -> Functions:
        """All functions of both symbol tables.

        Cost: 0.1 us per symbol.
        """
        address, size, name = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for kind in (_SHT_SYMTAB, _SHT_DYNSYM):
            found = self._symbols(kind)
            if found is None:
                continue
            table, strings = found
            head, value = table[:, 0].copy(), table[:, 1].astype(np.int64)
            what, section = head >> 32 & 0xF, head >> 48
            mine = np.flatnonzero(((what == _STT_FUNC) | (what == _STT_IFUNC)) & (section != 0) & (value != 0))
            address.append(value[mine])
            size.append(self._sizes(value[mine], table[mine, 2].astype(np.int64), section[mine]))
            name.append((head[mine] & 0xFFFFFFFF).astype(np.int64) + strings.offset)
        addresses = np.concatenate(address)
        order = np.argsort(addresses, kind="stable")
        addresses = addresses[order]
        first = np.concatenate(([True], addresses[1:] != addresses[:-1]))[: len(order)]
        order = order[first]
        return Functions(address=addresses[first], size=np.concatenate(size)[order], name=np.concatenate(name)[order])

    def _sizes(self, address: I64, size: I64, section: np.ndarray) -> I64:
        """Sizes of functions; if the file omits them, up to the end of their section."""
        ends = np.zeros(_MAX_SECTIONS, np.int64)
        last = [(part.address + part.size) % (1 << 64) for _, part in self._raw]
        ends[: len(self._raw)] = np.array(last, np.uint64).astype(np.int64)  # as ``address`` is of a symbol's 64 bits
        result: I64 = np.where(size > 0, size, np.maximum(1, ends[np.minimum(section, len(ends) - 1)] - address))
        return result

    def exports(self, name: str) -> bool:
        """Whether a dynamic symbol of this name is defined here."""
        found = self._symbols(_SHT_DYNSYM)
        return found is not None and self._defined(found, name) is not None

    def defines(self, name: str) -> bool:
        """Whether either symbol table defines this name, including local symbols."""
        return self.address_named(name) is not None

    def address_named(self, name: str) -> int | None:
        """The address of a name in either symbol table; None if neither defines it."""
        tables = [self._symbols(kind) for kind in (_SHT_DYNSYM, _SHT_SYMTAB)]
        found = (self._defined(table, name) for table in tables if table is not None)
        return next((address for address in found if address is not None), None)

    def functions_named(self, prefix: str) -> list[tuple[int, int]]:
        """(address, size) of the functions whose names begin with a prefix."""
        wanted = prefix.encode()
        functions = self.functions()
        names = functions.name.tolist()
        found = [i for i, at in enumerate(names) if self._data[at : at + len(wanted)] == wanted]
        return [(int(functions.address[i]), int(functions.size[i])) for i in found]

    def _defined(self, found: tuple[np.ndarray, Section], name: str) -> int | None:
        table, strings = found
        wanted = name.encode() + b"\0"
        at = strings.offset
        end = strings.offset + strings.size
        while (at := self._data.find(wanted, at, end)) >= 0:
            offset = at - strings.offset  # possibly within a longer name: linkers share tails
            head = table[:, 0]
            mine = np.flatnonzero((head & 0xFFFFFFFF == offset) & (head >> 48 != 0))
            if len(mine):
                return int(table[mine[0], 1])
            at += 1
        return None

    def dynamic(self) -> tuple[str, tuple[str, ...]]:
        """(its own name, names of the libraries that it needs, in order)."""
        for _, section in self._raw:
            if section.kind == _SHT_DYNAMIC and section.link < len(self._raw):
                entries = np.frombuffer(self._data, _DYNAMIC, section.size // _DYNAMIC.itemsize, section.offset)
                base = self._raw[section.link][1].offset
                needed = [self.name_at(base + int(v)) for v in entries["value"][entries["tag"] == _DT_NEEDED]]
                own = [self.name_at(base + int(v)) for v in entries["value"][entries["tag"] == _DT_SONAME]]
                return own[0] if own else "", tuple(needed)
        return "", ()
