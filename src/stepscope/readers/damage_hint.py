"""Files of other tools: how a binary file was damaged, if its bytes show it.

Damaged sessions: ``store.reader``, ``store.bundle``.
"""

from __future__ import annotations

PROBE_BYTES = 1 << 20
"""Number of bytes examined."""
_DECODED = b"\xef\xbf\xbd"
"""Bytes that a text decoder writes for invalid input: U+FFFD as UTF-8."""
_MANY_DECODED = 16


def hint(head: bytes, whole: str) -> str:
    """The end of a message: that the file went through a text decoder, or what was expected (``whole``)."""
    if head.count(_DECODED) < _MANY_DECODED:
        return f"; expected {whole}"
    return "; it went through a UTF-8 decoder, which cannot be undone: copy it again as binary"
