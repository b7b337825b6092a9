"""A frame as printed by ``perf script``: address, symbol+offset, (module).

Addresses and offsets differ between samples; the rest of a line is parsed once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.readers.demangle import demangle
from stepscope.readers.stacks.labels import KERNEL_MODULE, UNKNOWN_NAME
from stepscope.readers.stacks.modules import kind_of_module, plain_module, stand_in
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, StackBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

_BARE_FRAME = re.compile(rb"(?:[0-9a-f]{3,16} )?(?P<symbol>\S.*?)(?:\+0x[0-9a-f]+)?")
"""Pattern of a frame without a module, as printed by ``perf script -F ip,sym``."""
_SOURCE_LINE = re.compile(rb"\S+:\d+|\S+\[[0-9a-f]+\]|:0")
"""Pattern of the line that ``-F +srcline`` prints below a frame."""
_TRAMPOLINE = re.compile(r"py::(?P<function>.+?):(?P<file>[^:]*)")
"""Pattern of CPython's perf trampolines, 3.12 and later."""
_NO_MODULE = frozenset({"[unknown]", "unknown", "inlined", ""})
_NO_MODULES = (b"([unknown])", b"(unknown)", b"(inlined)")
"""Module names for which a frame's kind depends on its address."""
_NO_SYMBOL = frozenset({UNKNOWN_NAME, "(nil)", ""})
SYMBOL_AT = 18
"""Column of the symbol in perf's lines: after a tab and sixteen digits or blanks."""
_KERNEL_FROM = 0x8000_0000_0000_0000


class _Remembered(dict[bytes, int]):
    """Cache of callers' lines, which repeat entirely: return addresses are few."""

    def __init__(self, frame: Callable[[bytes], int]) -> None:
        self._frame = frame

    def __missing__(self, line: bytes) -> int:
        number = self[line] = self._frame(line)
        return number


class FrameLines:
    """Frame lines, as numbers of a builder's frames."""

    def __init__(self, builder: StackBuilder) -> None:
        """Add frames to ``builder``."""
        self._builder = builder
        self._lines = _Remembered(self.frame)
        self._known: dict[bytes, int] = {}
        self.unread = 0
        self.strange = b""
        """First line that is not a frame."""

    def stack(self, text: bytes) -> int:
        """The stack of lines, leaf to root."""
        lines = text.split(b"\n") if text else []
        lines.reverse()
        remembered = self._lines
        frames = [remembered[line] for line in lines]
        return self._builder.stack([frame for frame in frames if frame != UNKNOWN] if UNKNOWN in frames else frames)

    def frame(self, line: bytes) -> int:
        """The frame of a line; -1 if it adds to the frame above it, or is not recognised."""
        key = self.key(line)
        number = None if key is None else self._known.get(key)
        if number is None:
            number = self._parse(line)
            if key is not None:
                self._known[key] = number
        return number

    def key(self, line: bytes) -> bytes | None:
        """A line without address and offset; None if the rest does not identify the frame."""
        if line[SYMBOL_AT - 1 : SYMBOL_AT] != b" " or line.rstrip().endswith(_NO_MODULES):
            return None
        plus = line.rfind(b"+0x")
        return line[SYMBOL_AT:plus] + line[line.find(b" ", plus) :] if plus > 0 else line[SYMBOL_AT:]

    def _parse(self, line: bytes) -> int:
        address, _, rest = line.strip().partition(b" ")
        symbol, between, module = rest.rpartition(b" (")
        if module == b"deleted))":
            symbol, between, module = symbol.rpartition(b" (")
        if not between:
            return self._other(line.strip())
        offset = symbol.rfind(b"+0x")
        return self._builder.frame(_frame(address, symbol[:offset] if offset > 0 else symbol, module.rstrip(b")")))

    def _other(self, line: bytes) -> int:
        if not _SOURCE_LINE.fullmatch(line):
            found = _BARE_FRAME.fullmatch(line)
            if found is not None:
                return self._builder.frame(_frame(b"", found["symbol"], b""))
            self.unread += 1
            self.strange = self.strange or line
        return UNKNOWN


def _frame(address: bytes, symbol: bytes, module: bytes) -> Frame:
    """The frame of the parts. perf prints ``[unknown]`` for a missing symbol or module; the kernel is also recognised
    by its addresses.
    """
    name, where = symbol.decode(errors="replace").strip(), module.decode(errors="replace")
    where = "" if where in _NO_MODULE else plain_module(where)
    kind = kind_of_module(where) if where else FrameKind.NATIVE
    if not where and _is_of_kernel(address):
        where, kind = KERNEL_MODULE, FrameKind.KERNEL
    if name in _NO_SYMBOL:
        return Frame(stand_in(where, kind), module=where, kind=kind, resolved=False)
    if found := _TRAMPOLINE.fullmatch(name):
        return Frame(found["function"], file=found["file"], kind=FrameKind.PYTHON)
    return Frame(demangle(name), module=where, kind=kind)


def _is_of_kernel(address: bytes) -> bool:
    try:
        return int(address, 16) >= _KERNEL_FROM
    except ValueError:
        return False
