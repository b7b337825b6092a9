"""TensorFlow's log while its profiler is switched on or off: without the lines of level INFO that the profiler writes.

From 2.18 on TensorFlow logs through Abseil, whose level can be set while the process runs. It is raised for the
milliseconds in which a session begins and for as long as it takes to write one; other lines of level INFO that the
framework would write in that time are lost, warnings and errors are not. Earlier versions read their level once: their
lines stay.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, Optional, Tuple

    Level = Tuple[Callable[[], int], Callable[[int], None]]
    """Reads the level, sets it."""

LIBRARY = "libtensorflow_framework.so.2"
"""TensorFlow's core: what its other libraries share."""
_ABSEIL = (
    "20260107",
    "20250814",
    "20250512",
    "20250127",
    "20240722",
    "20240116",
    "20230802",
)
"""Abseil's releases, which its symbols name."""
_WARNING = 1


@contextmanager
def without_info() -> Iterator[None]:
    """Abseil's level is WARNING meanwhile, unless it is higher already or cannot be set."""
    level = _level()
    before = level[0]() if level is not None else _WARNING
    if level is None or before >= _WARNING:
        yield
        return
    level[1](_WARNING)
    try:
        yield
    finally:
        if level[0]() == _WARNING:  # otherwise the program has set it meanwhile
            level[1](before)


def _level() -> Optional[Level]:
    """Abseil's level in TensorFlow's library; None if it is not loaded or has none."""
    core = library()
    if core is None:
        return None
    for release in _ABSEIL:
        try:
            read = getattr(core, "_ZN4absl12lts_%s11MinLogLevelEv" % release)
            write = getattr(core, "_ZN4absl12lts_%s14SetMinLogLevelENS0_18LogSeverityAtLeastE" % release)
        except AttributeError:
            continue
        read.restype, read.argtypes = ctypes.c_int, ()
        write.restype, write.argtypes = None, (ctypes.c_int,)
        return read, write
    return None


def library() -> Optional[ctypes.CDLL]:
    """TensorFlow's core library, if the process has loaded it."""
    place = getattr(sys.modules.get("tensorflow"), "__file__", None)
    if not place:
        return None
    try:
        return ctypes.CDLL(os.path.join(os.path.dirname(place), LIBRARY), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
