"""Accesses to random pages, each waiting for the one before: a few instructions, because Python is too slow.

The code is written into a file in memory and mapped from there, read-only and executable, so that no memory is ever
writable and executable, and the kernel makes the instruction cache see it. Other processors are not measured.

x = x * 6364136223846793005 + 1 (Knuth's generator, period 2^64); its bits from 20 up, under a mask, choose the page,
and the page's number from bit 5 up the line in it, so that all sets of the caches are used. The word there is added to
x: it is 0, but the processor has to wait for it. After ``count`` rounds x is returned, which shows that all were 0.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from typing import TYPE_CHECKING

import numpy as np

from stepscope.tables.errors import TargetError

if TYPE_CHECKING:
    import numpy.typing as npt

FACTOR = 6364136223846793005
X86_64 = bytes.fromhex(
    "4889c8"  # mov rax, rcx
    "49b82d7f954c2df45158"  # mov r8, FACTOR
    "490fafc0"  # again: imul rax, r8
    "48ffc0"  # inc rax
    "4889c1"  # mov rcx, rax
    "48c1e914"  # shr rcx, 20
    "4821f1"  # and rcx, rsi
    "4989c9"  # mov r9, rcx
    "49c1e90b"  # shr r9, 11
    "4181e1c00f0000"  # and r9d, 0xfc0
    "4c09c9"  # or rcx, r9
    "4803040f"  # add rax, [rdi + rcx]
    "48ffca"  # dec rdx
    "75d5"  # jne again
    "c3"  # ret
)
"""Arguments in rdi, rsi, rdx, rcx; result in rax."""
AARCH64 = bytes.fromhex(
    "a4e58fd2a492a9f2a485def2240aebf2"  # mov x4, FACTOR
    "637c049b"  # again: mul x3, x3, x4
    "63040091"  # add x3, x3, 1
    "2550438a"  # and x5, x1, x3, lsr 20
    "a6fc4bd3"  # lsr x6, x5, 11
    "c6147a92"  # and x6, x6, 0xfc0
    "a50006aa"  # orr x5, x5, x6
    "066865f8"  # ldr x6, [x0, x5]
    "6300068b"  # add x3, x3, x6
    "420400f1"  # subs x2, x2, 1
    "e1feff54"  # b.ne again
    "e00303aa"  # mov x0, x3
    "c0035fd6"  # ret
)
"""Arguments in x0 to x3, result in x0."""
CODES = {"x86_64": X86_64, "aarch64": AARCH64}


class Chase:
    """The instructions, ready to be called. They stay mapped as long as this lives."""

    def __init__(self) -> None:
        """Map them.

        Raises:
            TargetError: this processor has none, or the kernel does not allow it.
        """
        code = CODES.get(platform.machine())
        if code is None:
            raise TargetError(f"not measured on {platform.machine()}")
        try:
            fd = os.memfd_create("stepscope-chase", os.MFD_CLOEXEC)
            try:
                os.write(fd, code)
                self._map = mmap.mmap(fd, len(code), mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
            finally:
                os.close(fd)
        except (OSError, ValueError) as error:
            raise TargetError(f"this system does not let a program map its own instructions: {error}") from error
        signature = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 4)
        self._function = signature(np.frombuffer(self._map, np.uint8).ctypes.data)

    def run(self, memory: npt.NDArray[np.uint8], count: int, seed: int) -> int:
        """Make ``count`` accesses, at least one, to memory of zeros; returns x. Units: bytes of a power of two."""
        mask = (len(memory) - 1) & ~(mmap.PAGESIZE - 1)
        return int(self._function(memory.ctypes.data, mask, count, seed))
