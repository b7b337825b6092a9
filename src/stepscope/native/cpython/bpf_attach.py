"""Python's frames at the moment of a native sample: a BPF program follows them when perf takes the sample.

Native stacks contain CPython's own frames. Each runs one Python function up to 3.10, several later; which ones is
stored elsewhere in memory, and changes immediately. The program runs in the kernel at each sample, follows the frames
of the thread from the innermost to the outermost, and outputs their addresses, code and positions. It reads resident
memory and never waits; missing memory ends the row. This needs root; without it, ``frame_gaps`` and the agent's samples
are used. CPython 3.10 to 3.13.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from stepscope.native.cpython.bpf_program import program, rows_of
from stepscope.native.kernel import bpf

if TYPE_CHECKING:
    from stepscope.native.cpython.bpf_program import InterpreterOffsets, ThreadFrames

RING_BYTES = 8 << 20
"""Size of 1,600 rows, which are taken out at least once a second."""
NEAR_NS = 300_000
"""Maximum time between a sample and its row: perf records the sample directly after the program, but may be
interrupted."""


class FrameWatch:
    """Watches the frames of one process while perf samples it."""

    def __init__(self, layout: InterpreterOffsets, runtime: int, pid: int, one_page_in: int = 1) -> None:
        """Begin to watch. ``layout``: verified for the process by ``layout_check``; ``runtime``: address of its
        _PyRuntime; ``one_page_in``: only of samples whose address is in one of so many pages.

        Raises:
            OSError: no rights, or no BPF.
        """
        self._layout = layout
        self._rows: dict[int, list[ThreadFrames]] = defaultdict(list)
        with ExitStack() as held:
            self._ring = held.enter_context(closing(bpf.Ring(RING_BYTES)))
            code = program(self._layout, runtime, self._ring.fd, pid, one_page_in)
            self.program = held.enter_context(closing(bpf.Program(code)))
            """Program to attach to perf's counters."""
            self._held = held.pop_all()

    def update(self) -> None:
        """Take out the rows in the ring."""
        for told in self._ring.taken():
            tid, row = rows_of(self._layout, told)
            self._rows[tid].append(row)

    def row(self, tid: int, at_ns: int) -> ThreadFrames | None:
        """The row of a thread at a moment (CLOCK_MONOTONIC)."""
        rows = self._rows.get(tid, [])
        at = bisect.bisect_left(rows, at_ns, key=lambda row: row.at_ns)
        near = [row for row in rows[max(at - 1, 0) : at + 1] if abs(row.at_ns - at_ns) <= NEAR_NS]
        return min(near, key=lambda row: abs(row.at_ns - at_ns), default=None)

    def close(self) -> None:
        """Release everything; rows already taken stay."""
        self._held.close()
