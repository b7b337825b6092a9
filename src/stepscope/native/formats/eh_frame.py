"""Unwinding out of a function by the ``.eh_frame`` section of an ELF file, which locates the caller's registers.

Compilers write it for exceptions, so every build has it, with or without frame pointers. Look-ups use the sorted table
of ``.eh_frame_hdr``; a function's instructions are run once for each requested address.

Source: LSB 5, 10.6 (https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/ehframechpt.html).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from stepscope.native.formats import call_frames
from stepscope.native.formats.call_frames import Common, Cursor, Rule, UnwindRules
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from stepscope.native.formats.elf import ElfFile

_VERSION = 1
_TABLE_ENCODING = 0x3B
"""Encoding that every linker writes: pairs of signed 4-byte offsets from the header."""
_HEADER_BYTES = 12
_LAST_ADDRESS = (1 << 62) - 1
"""Of user space; above it no sum of two is a number of 64 bits."""
_LONG = 0xFFFFFFFF
"""Length value which says that the length follows in 8 bytes."""
_FORM = 0x0F
_LINKAGE = (".plt", ".plt.sec", ".plt.got", ".iplt")
_X86_64 = 62
_IN_LINKAGE = UnwindRules(
    cfa=Rule("register", number=7, offset=8),
    saved=((16, -8),),
    others=(),
    return_register=16,
)
"""Rules for an entry of a procedure linkage table, which jumps on at once; some linkers write no unwind rows for them.
x86-64."""


class UnwindTable:
    """The unwind table of one file. Addresses are the file's own."""

    def __init__(self, elf: ElfFile) -> None:
        """Map its sections. A file without them, or with an unusual table, has no rows.

        Raises:
            FormatError: the table points outside the file, or lies at no address of user space.
        """
        header, frames = elf.sections.get(".eh_frame_hdr"), elf.sections.get(".eh_frame")
        linkage = [elf.sections[name] for name in _LINKAGE if name in elf.sections and elf.machine == _X86_64]
        self._linkage = [(section.address, section.address + section.size) for section in linkage]
        self._common: dict[int, Common] = {}
        self._rows: dict[int, UnwindRules | None] = {}
        self._starts = self._entries = np.empty(0, np.int64)
        self._data = elf.view_of(frames) if frames is not None else memoryview(b"")
        self._base = frames.address if frames is not None else 0
        raw = elf.bytes_of(header) if header is not None else b""
        if header is None or len(raw) < _HEADER_BYTES or (raw[0], raw[3]) != (_VERSION, _TABLE_ENCODING):
            return
        count = struct.unpack_from("<I", raw, 8)[0]
        if _HEADER_BYTES + 8 * count > len(raw):
            raise FormatError(f"{elf.where}: .eh_frame_hdr has {len(raw)} bytes for {count} entries")
        if max(header.address, self._base) > _LAST_ADDRESS:
            raise FormatError(f"{elf.where}: .eh_frame_hdr lies at {header.address:#x}, .eh_frame at {self._base:#x}")
        table = np.frombuffer(raw, "<i4", 2 * count, _HEADER_BYTES).reshape(count, 2).astype(np.int64)
        self._starts = table[:, 0] + header.address
        self._entries = table[:, 1] + header.address - self._base

    def row(self, address: int) -> UnwindRules | None:
        """The rules at an address; None if the table does not cover it.

        Cost: 20 us for a new address, 0.2 us for a repeated one.
        """
        if address not in self._rows:
            try:
                found = self._find(address)
            except (struct.error, IndexError, KeyError, ValueError, FormatError):  # damaged or unsupported
                found = None
            if found is None and any(start <= address < end for start, end in self._linkage):
                found = _IN_LINKAGE
            self._rows[address] = found
        return self._rows[address]

    def _find(self, address: int) -> UnwindRules | None:
        at = int(np.searchsorted(self._starts, address, side="right")) - 1
        if at < 0:
            return None
        cursor, end = self._entry(int(self._entries[at]))
        place = cursor.at
        common_at = place - cursor.fixed("<I")
        if common_at not in self._common:
            self._common[common_at] = self._read_common(common_at)
        common = self._common[common_at]
        start = cursor.pointer(common.encoding)
        size = cursor.pointer(common.encoding & _FORM)
        if not start <= address < start + size:
            return None
        if common.augmented:
            cursor.block()
        return call_frames.row(common, Cursor(self._data[cursor.at : end]), start, address)

    def _entry(self, at: int) -> tuple[Cursor, int]:
        """The position after the length of an entry, and the entry's end."""
        cursor = Cursor(self._data, at, self._base)
        length = cursor.fixed("<I")
        if length == _LONG:
            length = cursor.fixed("<Q")
        return cursor, cursor.at + length

    def _read_common(self, at: int) -> Common:
        cursor, end = self._entry(at)
        cursor.at += 4
        version = cursor.byte()
        augmentation = cursor.text()
        code_factor = cursor.unsigned()
        data_factor = cursor.signed()
        return_register = cursor.byte() if version == 1 else cursor.unsigned()
        encoding = 0
        augmented = augmentation.startswith("z")
        if augmented:
            size = cursor.unsigned()
            behind = cursor.at + size
            for letter in augmentation[1:]:
                if letter == "R":
                    encoding = cursor.byte()
                elif letter == "P":
                    cursor.pointer(cursor.byte())
                elif letter == "L":
                    cursor.byte()
            cursor.at = behind
        return Common(
            code_factor=code_factor,
            data_factor=data_factor,
            return_register=return_register,
            encoding=encoding,
            augmented=augmented,
            signal="S" in augmentation,
            instructions=bytes(self._data[cursor.at : end]),
        )
