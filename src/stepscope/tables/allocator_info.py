"""The allocator of a process."""

from __future__ import annotations

import msgspec


class AllocatorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The malloc that serves a process, as its dynamic linker resolved it."""

    name: str
    """Name: glibc | jemalloc | tcmalloc | mimalloc | tbbmalloc | musl | other | unknown"""
    how: str
    """Way it was loaded. default: the C library's own; preloaded; linked; static: in the program itself; unknown"""
    library: str = ""
    """Path of the library."""
    settings: dict[str, str] = {}
    """Environment variables that configure it, or TensorFlow's pools, as the process was started."""
    pool: str = ""
    """Pool that serves TensorFlow's tensors before malloc: oneDNN; none; "" if unknown, or without TensorFlow. For a
    process with the agent, the ``framework`` line's ``detail`` reports it from inside."""
