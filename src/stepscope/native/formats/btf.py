"""Where the members of a kernel's structures lie, and the names of its enumerations, by BTF (/sys/kernel/btf/vmlinux).

Only what is asked for is looked up, by the place of its name in the strings: reading all of a kernel's 100,000 types
would take a second, this takes milliseconds.

Source: Documentation/bpf/btf.rst, include/uapi/linux/btf.h.
"""

from __future__ import annotations

import struct

import numpy as np

from stepscope.tables.errors import FormatError

_HEADER = struct.Struct("<HBBIIIII")
_MAGIC = 0xEB9F
_STRUCT, _ENUM = 4, 6
_KIND_SHIFT, _KIND, _COUNT = 24, 0x1F, 0xFFFF
_BITS = 0xFFFFFF
"""Part of a member's offset that is bits; the rest is the width of a bit field, in structures that have one."""
_HEAD_WORDS = 3


class KernelTypes:
    """The types of a kernel."""

    def __init__(self, data: bytes) -> None:
        """Read the header.

        Raises:
            FormatError: it is no BTF of this machine's byte order.
        """
        if len(data) < _HEADER.size:
            raise FormatError("BTF: cut short")
        magic, _, _, head, types, types_size, strings, strings_size = _HEADER.unpack_from(data)
        first, last = head + types, head + types + types_size
        if magic != _MAGIC or types_size % 4 or max(last, head + strings + strings_size) > len(data):
            raise FormatError("BTF: no header of this machine's byte order, or cut short")
        self._words = np.frombuffer(data, "<u4", types_size // 4, first)
        self._strings = data[head + strings : head + strings + strings_size]

    def members(self, name: str) -> dict[str, int]:
        """Offsets in bytes of a structure's members, without those in unnamed parts of it; empty if it is unknown."""
        best: dict[str, int] = {}
        for at, count in self._types(name, _STRUCT):
            rows = self._words[at : at + 3 * count].reshape(-1, 3).tolist()
            found = {self._text(row[0]): (row[2] & _BITS) // 8 for row in rows if row[0]}
            best = max(best, found, key=len)
        return best

    def values(self, name: str) -> dict[int, str]:
        """The names of an enumeration's values; empty if it is unknown."""
        best: dict[int, str] = {}
        for at, count in self._types(name, _ENUM):
            rows = self._words[at : at + 2 * count].reshape(-1, 2).tolist()
            best = max(best, {row[1]: self._text(row[0]) for row in rows}, key=len)
        return best

    def _types(self, name: str, kind: int) -> list[tuple[int, int]]:
        """(first word of its members, their number) of what looks like a type of that name."""
        at = self._strings.find(b"\0" + name.encode("ascii") + b"\0")
        if at < 0:
            return []
        found = []
        for word in np.flatnonzero(self._words == at + 1).tolist():
            info = int(self._words[word + 1]) if word + _HEAD_WORDS <= len(self._words) else 0
            count, width = info & _COUNT, 3 if kind == _STRUCT else 2
            first = word + _HEAD_WORDS
            if info >> _KIND_SHIFT & _KIND == kind and first + count * width <= len(self._words):
                found.append((first, count))
        return found

    def _text(self, at: int) -> str:
        end = self._strings.find(b"\0", at)
        return self._strings[at:end].decode("ascii", "replace") if end >= 0 else ""
