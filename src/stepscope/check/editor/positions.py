"""Places in a text as the Language Server Protocol counts them.

Source: LSP specification 3.17, "Position": lines and characters from 0, characters in the units that client and server
agreed on (UTF-16 unless they say otherwise); lines end in CR LF, LF or CR, and in nothing else.
"""

from __future__ import annotations

from stepscope.check.fixing.edits import ParserLines

_BYTES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class Positions:
    """Places in one text.

    Args:
        text: the document.
        encoding: "utf-8", "utf-16" or "utf-32".
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.lines = ParserLines(text)
        self._codec, self._size = _BYTES.get(encoding, _BYTES["utf-16"])

    def of(self, offset: int) -> tuple[int, int]:
        """Line and character of an offset, both from 0."""
        line, _ = self.lines.position(offset)
        begin = self.lines.offset(line, 1)
        return line - 1, self._units(self.text[begin:offset])

    def of_column(self, line: int, column: int) -> tuple[int, int]:
        """Line and character of a line and column, which count from 1 and in characters."""
        begin = self.lines.offset(line, 1)
        return line - 1, self._units(self.text[begin : begin + column - 1])

    def _units(self, text: str) -> int:
        return len(text.encode(self._codec, "surrogatepass")) // self._size
