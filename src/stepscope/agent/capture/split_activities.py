"""TensorFlow's profiler in a process with collective operations: without the events that make it damage memory.

When recording ends, TensorFlow gathers the events of all threads in a vector of deques. It keeps addresses of events
that ended an activity which another thread had begun, and writes to them once all is gathered; but the vector grows in
the meantime, copies its deques, as libstdc++ does not move them, and frees the old ones. What is written then goes to
freed memory: one capture in ten ended the job, and where none does, memory may be damaged without a word. TensorFlow
2.15 and 2.21 do so, and the sources between them; see docs/decisions/0084-split-activities.md.

One activity of TensorFlow's is split between threads: collective operations that look up their group, in every task of
a cluster but the one that leads it. Its two events are joined by a number that ``TraceMeRecorder::NewActivityId``
gives, and an activity with the number 0 counts as not traced. So while we record in such a process, calls of that
function from within TensorFlow's core go to a function of libc that returns 0. They are few and all of one library:
they go through its table of imported functions, where one address is exchanged. Others get the same 0: the arrows from
the core's own threads to each other are missing from the trace.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import contextmanager

from stepscope.agent.capture.framework_log import library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, Optional

_NUMBERS = "_ZN3tsl8profiler15TraceMeRecorder13NewActivityIdEv"
"""Gives the number of an activity: ``int64_t NewActivityId()``."""
_ZERO = "pthread_getconcurrency"
"""Takes nothing and returns 0 in any program that has not set it, without a system call. Source: POSIX."""
_JUMP_SLOT = {"x86_64": 7, "aarch64": 1026}
"""Kind of the relocation of an imported function. Source: the architectures' ELF supplements."""
_PLTRELSZ, _STRTAB, _SYMTAB, _PLTREL, _JMPREL, _GNU_HASH = 2, 5, 6, 20, 23, 0x6FFFFEF5
"""Entries of the dynamic section. Source: elf.h."""
_RELA, _ENTRY, _INFO = 7, 24, 8
"""Kind of the relocations, size of one, and the place in it of its symbol and kind. Source: elf.h."""
_LINK_MAP = 2
"""``RTLD_DI_LINKMAP``. Source: dlfcn.h."""
_READ, _WRITE = 1, 2
"""``PROT_READ``, ``PROT_WRITE``. Source: sys/mman.h."""
REFUSED = (
    "TensorFlow's profiler damages the memory of a process with collective operations, and this build of it cannot be "
    "kept from that"
)


class CannotPreventError(Exception):
    """The place that has to be changed was not found."""


def happen() -> bool:
    """Whether the process is a task of a cluster with collective operations."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = getattr(module, "_context", None)
    return getattr(context, "_collective_ops_server_def", None) is not None


@contextmanager
def without() -> Iterator[None]:
    """No activity is split meanwhile, if any could be.

    Raises:
        CannotPreventError: they could be, and cannot be prevented.
    """
    if not happen():
        yield
        return
    place, zero = _slot(), getattr(ctypes.CDLL(None), _ZERO, None)
    if place is None or zero is None or zero():
        raise CannotPreventError(REFUSED)
    before = _exchange(place, ctypes.cast(zero, ctypes.c_void_p).value or 0)
    try:
        yield
    finally:
        _exchange(place, before)


def _exchange(place: int, address: int) -> int:
    """Write an address into the table of imported functions, and return the one before."""
    slot = ctypes.c_uint64.from_address(place)
    before = slot.value
    page = os.sysconf("SC_PAGE_SIZE")
    start, protect = place // page * page, ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes, protect.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    closed = not _writable(place)
    if closed and protect(start, page, _READ | _WRITE):
        raise CannotPreventError("%s: %s" % (REFUSED, os.strerror(ctypes.get_errno())))
    slot.value = address  # eight aligned bytes, written at once: other threads see one address or the other
    if closed:
        protect(start, page, _READ)
    return before


def _writable(place: int) -> bool:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            span, rights = line.split(None, 2)[:2]
            first, _, end = span.partition("-")
            if int(first, 16) <= place < int(end, 16):
                return "w" in rights
    return False


class _LinkMap(ctypes.Structure):
    """The begin of the linker's ``struct link_map``. Source: link.h."""

    _fields_ = (("base", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dynamic", ctypes.c_size_t))


def _slot() -> Optional[int]:
    """Address of the core's entry for ``_NUMBERS`` in its table of imported functions; None if it is not found."""
    kind, core = _JUMP_SLOT.get(platform.machine()), library()
    if kind is None or core is None:
        return None
    linker, found = ctypes.CDLL(None), ctypes.POINTER(_LinkMap)()
    if linker.dlinfo(ctypes.c_void_p(core._handle), _LINK_MAP, ctypes.byref(found)):
        return None
    base: int = found.contents.base
    entries = _dynamic(found.contents.dynamic)
    if entries.get(_PLTREL) != _RELA or not {_PLTRELSZ, _STRTAB, _SYMTAB, _JMPREL, _GNU_HASH} <= set(entries):
        return None
    places = {tag: value if value >= base else base + value for tag, value in entries.items()}
    symbol = _symbol(places, _NUMBERS.encode())
    if symbol is None:
        return None
    relocations = ctypes.string_at(places[_JMPREL], entries[_PLTRELSZ])
    wanted, at = struct.pack("<Q", symbol << 32 | kind), -1
    while (at := relocations.find(wanted, at + 1)) >= 0:
        if at % _ENTRY == _INFO:
            return base + int.from_bytes(relocations[at - _INFO : at], "little")
    return None


def _dynamic(at: int) -> Dict[int, int]:
    entries: Dict[int, int] = {}
    while True:
        tag, value = struct.unpack("<qQ", ctypes.string_at(at, 16))
        if not tag:
            return entries
        entries[tag] = value
        at += 16


def _symbol(places: Dict[int, int], name: bytes) -> Optional[int]:
    """Number of a symbol that the library defines, by its table of hashes. Source: the GNU hash section."""
    table = places[_GNU_HASH]
    count, offset, bloom, _ = struct.unpack("<4I", ctypes.string_at(table, 16))
    buckets = table + 16 + 8 * bloom
    chains = buckets + 4 * count
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    (number,) = struct.unpack("<I", ctypes.string_at(buckets + 4 * (value % count), 4))
    while number >= offset:
        (mixed,) = struct.unpack("<I", ctypes.string_at(chains + 4 * (number - offset), 4))
        (text,) = struct.unpack("<I", ctypes.string_at(places[_SYMTAB] + _ENTRY * number, 4))
        if mixed | 1 == value | 1 and ctypes.string_at(places[_STRTAB] + text) == name:
            return int(number)
        if mixed & 1:
            break
        number += 1
    return None
