"""The checksum of a whole Parquet file: pages carry theirs (decision 0038), its footer and the heads of pages do not.

Twelve bytes before the footer, where readers of Parquet do not look: ``MAGIC``, then the CRC-32 of all other bytes,
little endian. The file's metadata says that they are there (``MARK``), so that no single damage takes them away unseen:
neither to the mark nor to them.
"""

from __future__ import annotations

import zlib

MAGIC = b"STEPCRC1"
MARK = "stepscope.crc32"
"""Key of the metadata of a file that has a checksum."""
_CRC_BYTES = 4
_TAIL_BYTES = 8
"""Length of the footer, and Parquet's own magic."""


def sealed(data: bytes) -> bytes:
    """A Parquet file, with its checksum put in."""
    at = len(data) - _TAIL_BYTES - _footer_bytes(data)
    head = data[:at] + MAGIC
    crc = zlib.crc32(data[at:], zlib.crc32(head))
    return head + crc.to_bytes(_CRC_BYTES, "little") + data[at:]


def check(data: bytes) -> None:
    """Compare a file with its checksum; one of an earlier version, which has none, is not looked at.

    Raises:
        ValueError: it is not as it was written.
    """
    at = len(data) - _TAIL_BYTES - _footer_bytes(data)
    crc_at = at - _CRC_BYTES
    if crc_at < len(MAGIC) or data[crc_at - len(MAGIC) : crc_at] != MAGIC:
        if MARK.encode() in data or MAGIC in data:
            raise ValueError("its checksum is missing")
        return
    expected = int.from_bytes(data[crc_at:at], "little")
    found = zlib.crc32(data[at:], zlib.crc32(data[:crc_at]))
    if found != expected:
        raise ValueError(f"its CRC-32 is {found:08x}; expected {expected:08x}")


def _footer_bytes(data: bytes) -> int:
    return int.from_bytes(data[-_TAIL_BYTES : -_TAIL_BYTES // 2], "little")
