"""Memory of the framework's allocators during an op trace: live and reserved bytes, the peak and the ops that hold it.

An allocator takes memory from the device or the host once and reuses it: *live* is what ops hold, *available* what the
allocator holds in addition; both together are its pool. Memory allocated before the trace began (mostly the weights)
appears in the counters only.

Source: tsl/profiler/lib/scoped_memory_debug_annotation.h and the BFC allocator's ``AddTraceMe``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.readers.op_names import parse_op
from stepscope.tables.optrace import Category
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import F64, I64

MAX_HOLDERS = 20


class LiveMemory(Struct, frozen=True, kw_only=True):
    """Memory of an op that was live at the peak."""

    op: str
    type: str
    bytes: int
    blocks: int


class Timeline(Struct, frozen=True, kw_only=True):
    """One allocator. Shapes: [event], by time."""

    allocator: str
    at_ns: I64
    live_bytes: I64
    available_bytes: I64
    reserved_bytes: I64
    """Bytes set aside by the framework for no op: a stack."""
    fragmentation_ratio: F64
    """Share of the available memory outside its largest free block; NaN if unknown."""
    peak_bytes: int
    """Highest ``live_bytes`` of the process, also before the trace."""
    peak: int
    """Position of the peak within the trace."""
    holders: tuple[LiveMemory, ...]
    """Blocks live at the peak and allocated within the trace, largest first."""
    before_bytes: int
    """Bytes live at the peak and allocated before the trace."""

    @property
    def pool_bytes(self) -> int:
        """The largest size of the pool: live and available bytes."""
        return int((self.live_bytes + self.available_bytes).max())


def build(trace: OpTrace) -> tuple[Timeline, ...]:
    """All allocators in the trace, the highest peak first. Reads ten stats."""
    rows = np.flatnonzero(trace.categories() == Category.MEMORY)
    if not len(rows):
        return ()
    rows = rows[np.argsort(trace.events.start_ns[rows], kind="stable")]
    codes, names = trace.texts("allocator_name")
    known = rows[codes[rows] >= 0]
    stats = {
        name: trace.ints(name)[known]
        for name in (
            "bytes_allocated",
            "bytes_available",
            "bytes_reserved",
            "peak_bytes_in_use",
            "allocation_bytes",
            "addr",
        )
    }
    fragmentation = _floats(trace, "fragmentation")[known]
    ops, texts = trace.texts(StatName.TF_OP)
    freed = np.array([text == "MemoryDeallocation" for text in trace.strings], np.bool_)[trace.names()[known]]
    found = []
    for code in np.unique(codes[known]).tolist():
        mine = np.flatnonzero(codes[known] == code)
        live = stats["bytes_allocated"][mine]
        peak = int(live.argmax())
        sign = np.where(freed[mine], -1, 1)
        held = _held(stats["addr"][mine], np.abs(stats["allocation_bytes"][mine]), sign, peak)
        holders = _holders(held, ops[known[mine]].tolist(), texts)
        found.append(
            Timeline(
                allocator=names[code],
                at_ns=trace.events.start_ns[known[mine]],
                live_bytes=live,
                available_bytes=np.maximum(0, stats["bytes_available"][mine]),
                reserved_bytes=np.maximum(0, stats["bytes_reserved"][mine]),
                fragmentation_ratio=fragmentation[mine],
                peak_bytes=int(max(live.max(), stats["peak_bytes_in_use"][mine].max())),
                peak=peak,
                holders=holders[:MAX_HOLDERS],
                before_bytes=max(0, int(live[peak]) - sum(h.bytes for h in holders)),
            )
        )
    return tuple(sorted(found, key=lambda t: -t.peak_bytes))


def _floats(trace: OpTrace, name: str) -> F64:
    column = trace.stats.of_events(name)
    dense = np.full(len(trace.events), np.nan)
    if column.texts is None:
        dense[column.rows] = column.values
    return dense


def _held(address: I64, size: I64, sign: I64, until: int) -> dict[int, tuple[int, int]]:
    """Blocks that are allocated and not yet freed at an event: address to (event, bytes)."""
    held: dict[int, tuple[int, int]] = {}
    for i in range(until + 1):
        if sign[i] > 0:
            held[int(address[i])] = (i, int(size[i]))
        else:
            held.pop(int(address[i]), None)
    return held


def _holders(held: dict[int, tuple[int, int]], ops: list[int], texts: tuple[str, ...]) -> tuple[LiveMemory, ...]:
    sums: dict[str, tuple[int, int]] = {}
    for event, size in held.values():
        name = texts[ops[event]] if ops[event] >= 0 else ""
        total, blocks = sums.get(name, (0, 0))
        sums[name] = total + size, blocks + 1
    found = []
    for name, (size, blocks) in sums.items():
        op, kind = parse_op(name) or (name, "")
        found.append(LiveMemory(op=op, type=kind, bytes=size, blocks=blocks))
    return tuple(sorted(found, key=lambda h: -h.bytes))
