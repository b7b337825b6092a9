"""Demangled symbols: of C++ by the C++ library's demangler (unchanged if there is none), of Rust by ``rust_names``."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
from typing import TYPE_CHECKING

from stepscope.readers import rust_names

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NAME = 4096
"""Length above which a symbol is left unchanged."""


def demangle(symbol: str) -> str:
    """Turn ``_ZN3foo3barEv`` into ``foo::bar()``; anything else is unchanged.

    Source: Itanium C++ ABI, 3.4, ``__cxa_demangle``. Cost: about 3 us for a name of TensorFlow's.
    """
    if symbol.startswith("_R"):
        return rust_names.demangle(symbol)
    if not symbol.startswith("_Z") or len(symbol) > MAX_NAME:
        return symbol
    function = _library()
    mangled, at, version = symbol.partition("@")  # foo@plt, foo@@GLIBCXX_3.4
    return f"{rust_names.without_hash(function(mangled))}{at}{version}" if function is not None else symbol


@functools.cache
def _library() -> Callable[[str], str] | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        demangler = library["__cxa_demangle"]
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    demangler.restype = ctypes.c_void_p
    demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free.argtypes = [ctypes.c_void_p]

    def call(symbol: str) -> str:
        status = ctypes.c_int()
        result = demangler(symbol.encode(), None, None, ctypes.byref(status))
        if not result:
            return symbol
        try:
            return ctypes.string_at(result).decode("utf-8", "replace")
        finally:
            free(result)

    return call
