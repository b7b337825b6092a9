"""Reads /proc/PID/smaps into columns.

Source: proc_pid_smaps(5); Documentation/filesystems/proc.rst, "THPeligible".
"""

from __future__ import annotations

import numpy as np

from stepscope.tables.address_space import MappingTable
from stepscope.tables.errors import FormatError

_SIZES = {b"Rss:": 0, b"Anonymous:": 1, b"AnonHugePages:": 2, b"Swap:": 3}
_ELIGIBLE = b"THPeligible:"
_HEAD_WORDS = 5
"""Number of words before the name, which may be missing and may contain blanks: range, rights, offset, device,
inode."""

_KERNEL = 1 << 63
"""First kernel address: [vsyscall], the last line of all."""


def read(data: bytes) -> tuple[MappingTable, list[str]]:
    """The mappings, and the names that the column ``name`` indexes.

    Raises:
        FormatError: it is not smaps text.
    """
    heads: list[tuple[int, int, int, int, int, int]] = []
    sizes: list[list[int]] = []
    names: dict[bytes, int] = {}
    try:
        for line in data.split(b"\n"):
            word = line.partition(b" ")[0]
            if word in _SIZES:
                sizes[-1][_SIZES[word]] = int(line.split()[1]) << 10
            elif word == _ELIGIBLE:
                sizes[-1][4] = int(line.split()[1])
            elif word and not word.endswith(b":"):
                words = line.split(None, _HEAD_WORDS)
                first, last = (int(part, 16) for part in word.split(b"-"))
                if first >= _KERNEL:
                    break
                rights = words[1]
                name = names.setdefault(words[_HEAD_WORDS] if len(words) > _HEAD_WORDS else b"", len(names))
                flags = (int(b"w" in rights), int(b"r" in rights), int(b"p" in rights))
                heads.append((first, last, name, *flags))
                sizes.append([0, 0, 0, 0, -1])
    except (ValueError, IndexError) as error:
        raise FormatError(f"no smaps: {line[:80]!r}: {error}; expected what /proc/PID/smaps says") from error
    head = np.array(heads, np.int64).reshape(len(heads), 6).T
    size = np.array(sizes, np.int64).reshape(len(sizes), 5).T
    unknown = np.full(len(heads), -1, np.int64)
    table = MappingTable(
        start=head[0],
        end=head[1],
        name=head[2],
        writable=head[3],
        readable=head[4],
        private=head[5],
        rss_bytes=size[0],
        anonymous_bytes=size[1],
        huge_bytes=size[2],
        swap_bytes=size[3],
        eligible=size[4],
        full_blocks=unknown,
        part_blocks=unknown,
        block_pages=unknown,
    )
    return table, [name.decode("utf-8", "replace") for name in names]
