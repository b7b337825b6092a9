"""What a damaged binary file went through, as far as its bytes tell."""

from __future__ import annotations

PROBE_BYTES = 1 << 20
"""How much of a file is looked at."""
_DECODED = b"\xef\xbf\xbd"
"""What a text decoder leaves where bytes were no text: U+FFFD as UTF-8."""
_MANY_DECODED = 16


def hint(head: bytes, whole: str) -> str:
    """The end of a message: that the file went through a text decoder, or what was expected (``whole``)."""
    if head.count(_DECODED) < _MANY_DECODED:
        return f"; expected {whole}"
    return "; it went through a UTF-8 decoder, which cannot be undone: copy it again as binary"
