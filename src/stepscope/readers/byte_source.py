"""A file's bytes without holding them in memory: read at single places, or copied window by window.

Single reads use a memory map and cost only the touched pages; windows are read with ``preadv`` into reused memory. A
trace of some gigabytes is thus read with some megabytes.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import TYPE_CHECKING

from stepscope.readers.protobuf.varints import PADDING, Buffer
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

_SPARE = 16
"""Fraction (one part in so many) by which memory for a window exceeds its size: windows of a file differ little in
length."""


class ByteSource:
    """Bytes of a file or in memory. Positions count from the first of them."""

    def __init__(self, content: bytes, name: str = "") -> None:
        """Wrap bytes in memory."""
        self.name = name
        self.size = len(content)
        self.view = memoryview(content)
        self._fd = -1

    @classmethod
    def open(cls, path: Path) -> ByteSource:
        """Open a file, which stays open as long as the object lives.

        Raises:
            FormatError: it cannot be read.
        """
        source = cls(b"", path.name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
        weakref.finalize(source, os.close, fd)
        source._fd = fd
        try:
            source.size = os.fstat(fd).st_size
            if source.size:
                source.view = memoryview(mmap.mmap(fd, source.size, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise FormatError(f"{path}: cannot be read: {error}") from error
        return source

    def read_into(self, target: bytearray, first: int, last: int) -> None:
        """Copy the bytes between two positions to the beginning of ``target``.

        Raises:
            FormatError: the file has become shorter.
        """
        if self._fd < 0:
            target[: last - first] = self.view[first:last]
            return
        done = 0
        with memoryview(target) as room:
            while done < last - first:
                got = os.preadv(self._fd, [room[done : last - first]], first + done)
                if not got:
                    raise FormatError(f"{self.name}: shrank while it was read")
                done += got

    def text(self, first: int, last: int) -> str:
        """Decode UTF-8; invalid bytes are replaced."""
        return self.view[first:last].tobytes().decode("utf-8", "replace")


class Windows:
    """Copies windows of a source into one piece of memory: a window is valid until the next one is requested."""

    def __init__(self, source: ByteSource) -> None:
        """Read from a source."""
        self._source = source
        self._content = bytearray()

    def at(self, first: int, last: int) -> Buffer:
        """The bytes between two positions.

        Raises:
            FormatError: the file has become shorter.
        """
        size = last - first
        if len(self._content) < size + PADDING:
            self._content = bytearray(size + size // _SPARE + PADDING)
        self._source.read_into(self._content, first, last)
        self._content[size : size + PADDING] = bytes(PADDING)
        return Buffer(self._content, size, first)
