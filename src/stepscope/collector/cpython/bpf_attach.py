"""Python's frames of the very moment of a native sample: a BPF program follows them when perf takes the sample.

Native stacks hold CPython's own frames, each of which runs one Python function up to 3.10, several later: which lies
elsewhere in memory, and is gone a moment later. The program runs in the kernel at each sample, follows the frames of
the thread from the innermost to the outermost, and tells where they are, what they run and how far they are. It reads
memory that is there and never waits; what is not there ends the row. That is root's alone; without it ``frame_gaps``
and the agent's samples tell what they can. CPython 3.10 to 3.13.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from stepscope.collector.cpython.bpf_program import program, rows_of
from stepscope.collector.kernel import bpf

if TYPE_CHECKING:
    from stepscope.collector.cpython.bpf_program import Layout, Row

RING_BYTES = 8 << 20
"""1,600 rows: they are taken out once a second and more often."""
NEAR_NS = 300_000
"""Between a sample's time and its row's: perf notes it right behind the program, but may be interrupted."""


class FrameWatch:
    """Watches the frames of one process while perf samples it."""

    def __init__(self, layout: Layout, runtime: int, pid: int) -> None:
        """``layout``: seen to fit the process, by ``layout_check``; ``runtime``: address of its _PyRuntime.

        Raises:
            OSError: no rights, or no BPF.
        """
        self._layout = layout
        self._rows: dict[int, list[Row]] = defaultdict(list)
        with ExitStack() as held:
            self._ring = held.enter_context(closing(bpf.Ring(RING_BYTES)))
            code = program(self._layout, runtime, self._ring.fd, pid)
            self.program = held.enter_context(closing(bpf.Program(code)))
            """To be attached to perf's counters."""
            self._held = held.pop_all()

    def update(self) -> None:
        """Take out what was told."""
        for told in self._ring.taken():
            tid, row = rows_of(self._layout, told)
            self._rows[tid].append(row)

    def row(self, tid: int, at_ns: int) -> Row | None:
        """What a thread ran at a moment (CLOCK_MONOTONIC)."""
        rows = self._rows.get(tid, [])
        at = bisect.bisect_left(rows, at_ns, key=lambda row: row.at_ns)
        near = [row for row in rows[max(at - 1, 0) : at + 1] if abs(row.at_ns - at_ns) <= NEAR_NS]
        return min(near, key=lambda row: abs(row.at_ns - at_ns), default=None)

    def close(self) -> None:
        """Give everything back; what was told stays."""
        self._held.close()
