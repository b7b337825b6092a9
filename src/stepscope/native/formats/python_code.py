"""CPython's code objects in a process's memory: file, function, and the line of an instruction.

CPython 3.10 to 3.13 on 64-bit little-endian machines. The memory belongs to another process and may have changed:
anything that does not look like a code object is rejected.

Source: CPython, Include/cpython/code.h and unicodeobject.h of each version; Objects/lnotab_notes.txt (3.10),
Objects/locations.md (3.11 and later).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

Read = Callable[[int, int], bytes]
"""Function from (address, size) to bytes, fewer if they are unavailable."""
UNIT = 2
"""Bytes of an instruction, and of each entry of its cache."""
TYPE_AT, _SIZE_AT = 8, 16
_MAX_TEXT, _MAX_TABLE, _MAX_UNITS = 4096, 1 << 20, 1 << 22
_MAX_NAMES = 1 << 16
_ASCII, _COMPACT, _KIND_FROM = 1 << 6, 1 << 5, 2
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}
_NO_LINE_310 = -128
_NONE, _LONG, _NO_COLUMNS, _ONE_LINE = 15, 14, 13, 10
"""Kinds of location entries. Source: locations.md."""


class CodeOffsets(Struct, frozen=True, kw_only=True):
    """Offsets of the fields of a code object. Bytes."""

    file: int
    function: int
    """Offset of the qualified name, if there is one, else of the name."""
    first_line: int
    lines: int
    instructions: int
    """Offset of the first instruction; up to 3.10, of the pointer to the bytes object that holds them."""
    inside: bool
    """Flag: instructions are in the code object itself."""
    text: int
    """Offset of the letters in an ASCII string; others have 16 or 24 bytes more before them."""
    wide: int
    sizes: tuple[int, ...] = ()
    """Offsets of numbers whose sum is the words of a frame, if known."""
    fixed: int = 0
    """Words of a frame in addition to these."""
    frame_code: int = 0
    """Offset of the pointer to the code object, in a frame."""
    frame_caller: int = 8
    """Offset of the pointer to the caller's frame, in a frame."""
    names: int = 32
    """Offset of the pointer to the names that the code uses: globals, attributes, modules."""


LAYOUTS = {
    (3, 10): CodeOffsets(
        file=104, function=112, first_line=40, lines=120, instructions=48, inside=False, text=48, wide=72
    ),
    (3, 11): CodeOffsets(
        file=112,
        function=128,
        first_line=72,
        lines=136,
        instructions=184,
        inside=True,
        text=48,
        wide=72,
        sizes=(76, 68),
        fixed=9,
        frame_code=32,
        frame_caller=48,
    ),
    (3, 12): CodeOffsets(
        file=112,
        function=128,
        first_line=68,
        lines=136,
        instructions=192,
        inside=True,
        text=40,
        wide=56,
        sizes=(76,),
    ),
    (3, 13): CodeOffsets(
        file=112,
        function=128,
        first_line=68,
        lines=136,
        instructions=200,
        inside=True,
        text=40,
        wide=56,
        sizes=(76,),
    ),
}
"""Layouts by version; observed in 3.10.13, 3.11.7, 3.12.1 and 3.13.0."""
_BYTES_DATA, _ITEMS = 32, 24
_STATE_AT = 32
"""Offset in a string of the width of its letters, and whether they follow."""
_WORD, _U32, _I64, _I32 = struct.Struct("<Q"), struct.Struct("<I"), struct.Struct("<q"), struct.Struct("<i")


class PythonCode(NamedTuple):
    """A function as the interpreter sees it."""

    file: str
    function: str
    first_line: int
    start: int
    """Address of its first instruction."""
    size: int
    """Size of its instructions, bytes."""
    lines: bytes
    inside: bool
    address: int
    frame_size: int
    """Size of a frame that runs it, bytes; 0 if unknown."""

    def is_behind(self, address: int) -> bool:
        """Whether an address follows one of the instructions, as the next instruction's address does while one runs."""
        return self.start < address <= self.start + self.size

    def line(self, address: int) -> int:
        """The line of the instruction that ends at an address; 0 if unknown."""
        return self.line_at(address - UNIT)

    def line_at(self, address: int) -> int:
        """The line of the instruction at an address; 0 if unknown."""
        offset = max(address - self.start, 0)
        if not self.inside:
            return _line_310(self.lines, self.first_line, offset)
        return _line_311(self.lines, self.first_line, offset // UNIT)

    def line_in_frame(self, at: int) -> int:
        """The line of a frame; ``at``: the instruction as stored in frames: its address, up to 3.10 its number."""
        if self.inside:
            return self.line_at(at)
        return self.line_at(self.start + UNIT * at) if at >= 0 else self.first_line


def read_code(read: Read, address: int, layout: CodeOffsets) -> PythonCode | None:
    """The code object at an address; None if there is none."""
    size = max(layout.instructions, layout.lines) + _WORD.size
    head = read(address, size)
    if len(head) < size:
        return None

    def pointer(at: int) -> int:
        return int(_WORD.unpack_from(head, at)[0])

    (first_line,) = _I32.unpack_from(head, layout.first_line)
    if layout.inside:
        start, size = address + layout.instructions, UNIT * pointer(_SIZE_AT)
    else:
        start, size = pointer(layout.instructions) + _BYTES_DATA, _size(read, pointer(layout.instructions))
    file, function = _text(read, pointer(layout.file), layout), _text(read, pointer(layout.function), layout)
    lines = _bytes(read, pointer(layout.lines))
    if not (0 < size <= UNIT * _MAX_UNITS and first_line >= 0 and file and function and lines is not None):
        return None
    words = sum(_I32.unpack_from(head, at)[0] for at in layout.sizes) + layout.fixed if layout.sizes else 0
    return PythonCode(
        file, function, first_line, start, size, lines, layout.inside, address, words * _WORD.size if words > 0 else 0
    )


def names_used(read: Read, code: PythonCode, layout: CodeOffsets) -> frozenset[str]:
    """The globals and attributes that a code object names."""
    word = read(code.address + layout.names, _WORD.size)
    address = _WORD.unpack(word)[0] if len(word) == _WORD.size else 0
    size = _size(read, address)
    items = read(address + _ITEMS, size * _WORD.size) if 0 < size <= _MAX_NAMES else b""
    return frozenset(_text(read, item, layout) for (item,) in _WORD.iter_unpack(items[: len(items) // 8 * 8]))


def _size(read: Read, address: int) -> int:
    word = read(address + _SIZE_AT, _I64.size)
    return int(_I64.unpack(word)[0]) if len(word) == _I64.size else -1


def _bytes(read: Read, address: int) -> bytes | None:
    size = _size(read, address)
    if not 0 <= size <= _MAX_TABLE:
        return None
    data = read(address + _BYTES_DATA, size)
    return data if len(data) == size else None


def _text(read: Read, address: int, layout: CodeOffsets) -> str:
    size = _size(read, address)
    state = read(address + _STATE_AT, _U32.size)
    if not 0 < size <= _MAX_TEXT or len(state) < _U32.size:
        return ""
    (bits,) = _U32.unpack(state)
    width = bits >> _KIND_FROM & 7
    if not bits & _COMPACT or width not in _CODECS:
        return ""
    data = read(address + (layout.text if bits & _ASCII else layout.wide), size * width)
    return data.decode(_CODECS[width], "replace") if len(data) == size * width else ""


def _line_310(table: bytes, first: int, offset: int) -> int:
    end, line = 0, first
    for at in range(0, len(table) - 1, 2):
        step, more = table[at], int.from_bytes(table[at + 1 : at + 2], "little", signed=True)
        end += step
        if more == _NO_LINE_310:
            if offset < end:
                return 0
            continue
        line += more
        if offset < end:
            return line
    return 0


def _line_311(table: bytes, first: int, unit: int) -> int:
    at, end, line = 0, 0, first
    while at < len(table):
        kind, end = table[at] >> 3 & 15, end + (table[at] & 7) + 1
        at += 1
        if kind in (_LONG, _NO_COLUMNS):
            delta, at = _signed(table, at)
            line += delta
        elif _ONE_LINE <= kind < _NO_COLUMNS:
            line += kind - _ONE_LINE
        while at < len(table) and not table[at] & 0x80:  # column data
            at += 1
        if unit < end:
            return 0 if kind == _NONE else line
    return 0


def _signed(table: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(table):
        byte = table[at]
        at += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            break
    return (-(value >> 1) if value & 1 else value >> 1), at
