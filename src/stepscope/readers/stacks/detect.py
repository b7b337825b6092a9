"""Reads a file of stacks of any kind, which is recognised by its content, never by its name.

Files come from other tools: sizes are bounded, for packed ones before and after unpacking.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

from stepscope.readers.stacks import folded, perf_script, pprof, speedscope
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.tables.stacks import StackProfile

MAX_BYTES = 4 << 30
"""Maximum size of a file, and of its unpacked content."""
HEAD_BYTES = 64 << 10
"""Bytes that suffice to recognise a file."""
_MOST = 0.5
"""Share of lines that must be folded stacks, in a file that may be of any kind."""
_LEAST = 0.1
"""The same of a file that somebody named as one of stacks: headers and remarks of tools may be more than its stacks."""
_GZIP = b"\x1f\x8b"
_OTHERS = (
    (b"PERFILE2", "binary data of perf record", "perf script -i FILE > stacks.txt"),
    (b"SQLite", "an SQLite database", "the export of the tool that wrote it"),
    (b"PK\x03\x04", "a zip file", "unpack it"),
    (b"\x7fELF", "a program or library", "perf record -g PROGRAM, perf script"),
)
KINDS = "perf script's text, folded stacks, pprof or speedscope JSON"


def knows(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (``HEAD_BYTES`` of it) holds stacks: stricter than ``read``, whose
    caller says so.
    """
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            return False
    if speedscope.looks_like(head):
        return speedscope.is_named(head)
    return pprof.looks_like(head) or perf_script.looks_like(head) or folded.share(head) > _MOST


def read_file(path: Path) -> tuple[StackProfile, ...]:
    """The profiles in a file, with the one to show first in front.

    Raises:
        FormatError: it is missing, too large, of no known kind, or damaged.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            if 0 < os.fstat(stream.fileno()).st_size <= MAX_BYTES and _is_perf_script(head):
                return perf_script.read_stream(stream, head, where=str(path))
            data = head + stream.read(MAX_BYTES + 1 - len(head))
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}; expected a file of {KINDS}") from error
    if len(data) > MAX_BYTES:
        raise FormatError(f"{path}: larger than {MAX_BYTES >> 30} GiB; expected less: record a shorter window")
    return read(data, where=str(path))


def read(data: bytes, *, where: str) -> tuple[StackProfile, ...]:
    """The profiles in bytes; ``where`` names them in messages.

    Raises:
        FormatError: of no known kind, or damaged.
    """
    if data.startswith(_GZIP):
        data = _unpack(data, where)
    head = data[:HEAD_BYTES]
    for magic, what, instead in _OTHERS:
        if head.startswith(magic):
            raise FormatError(f"{where}: {what}; expected {KINDS}: {instead}")
    if speedscope.looks_like(head):
        return speedscope.read(data, where=where)
    if pprof.looks_like(head):
        return pprof.read(data, where=where)
    if perf_script.looks_like(head):
        return perf_script.read(data, where=where)
    if folded.is_binary(head):
        raise FormatError(f"{where}: binary data of no known kind; expected {KINDS}")
    found = folded.share(head, lone=True)
    if 0 < found <= _LEAST:
        raise FormatError(
            f"{where}: text of no known kind: {100 * found:.0f} % of its lines are folded stacks; expected {KINDS}"
        )
    return (folded.read(data, where=where),)


def _is_perf_script(head: bytes) -> bool:
    """Whether ``read`` would treat a file with this beginning as text of ``perf script``."""
    others = head.startswith((_GZIP, *(magic for magic, _, _ in _OTHERS)))
    return not (others or speedscope.looks_like(head) or pprof.looks_like(head)) and perf_script.looks_like(head)


def _unpack(data: bytes, where: str) -> bytes:
    parts = []
    size = 0
    while data.startswith(_GZIP):
        unpack = zlib.decompressobj(wbits=31)
        try:
            part = unpack.decompress(data, MAX_BYTES + 1 - size)
        except zlib.error as error:
            raise FormatError(f"{where}: damaged gzip: {error}") from error
        size += len(part)
        if size > MAX_BYTES:
            raise FormatError(f"{where}: unpacks to more than {MAX_BYTES >> 30} GiB; expected less")
        if not unpack.eof:
            raise FormatError(
                f"{where}: gzip is cut short after {size} bytes; expected the complete file: copy it again"
            )
        parts.append(part)
        data = unpack.unused_data
    return b"".join(parts)
