"""Gives the memory behind a part of a file back, while others have it mapped: they read zeros there.

Source: fallocate(2), FALLOC_FL_PUNCH_HOLE; linux/include/uapi/linux/falloc.h.
"""

from __future__ import annotations

import ctypes
import os

_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02


def punch(fd: int, offset: int, length: int) -> None:
    """Make a hole of ``length`` bytes; its ends are the file system's to keep, within a page.

    Raises:
        OSError: the file system has no holes, or the file is not open for writing.
    """
    call = ctypes.CDLL(None, use_errno=True).fallocate
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(fd, _KEEP_SIZE | _PUNCH_HOLE, offset, length):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
