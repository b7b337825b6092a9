"""Memory events in a perf window: sampled page faults with their addresses, calls that release memory, maps.

Source: sys_enter_madvise and similar in /sys/kernel/tracing/events/syscalls: eight bytes common to all events, the
call's number, then its arguments, eight bytes each.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from stepscope.native.memory.address_space import Range, Ranges
from stepscope.native.windows.native_decode import FAULTS, event_of
from stepscope.tables.records import Mapped, MemoryEvent, MemoryEventTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.native.formats.perf_data import PerfRecording
    from stepscope.native.kernel.release_calls import ReleaseCall

MAX_EVENTS = 200_000
"""Maximum number of events of a window; beyond it every k-th is kept and stands for the others."""
_PAGE_BYTES = 4096
_CALLS = {"madvise": MemoryEvent.MADVISE, "munmap": MemoryEvent.MUNMAP, "brk": MemoryEvent.BRK}
_ARGUMENTS = {
    MemoryEvent.MADVISE: struct.Struct("<16x3Q"),
    MemoryEvent.MUNMAP: struct.Struct("<16x2Q"),
    MemoryEvent.BRK: struct.Struct("<16xQ"),
}
_NUMBER_OF = {kind: (layout.size - 16) // 8 for kind, layout in _ARGUMENTS.items()}
_NAMED = {"[heap]": Mapped.HEAP, "[stack]": Mapped.STACK, "//anon": Mapped.ANONYMOUS, "": Mapped.ANONYMOUS}
_Row = tuple[int, int, int, int, int, int, int, int, int]


def decode(
    recorded: PerfRecording, pid: int, *, origin_ns: int, window: int, calls: Sequence[ReleaseCall] = ()
) -> MemoryEventTable:
    """The memory events of one process in one window, in time order; ``calls``: those that perf did not record."""
    rows = _calls_and_faults(recorded, pid, origin_ns, window)
    rows += [
        _called((call.at_ns - origin_ns, window, pid, call.native), _CALLS[call.name], call.arguments, 1)
        for call in calls
    ]
    rows += [
        (m.at_ns - origin_ns, window, pid, m.tid, MemoryEvent.MMAP, m.start, m.size, 0, 1)
        for m in recorded.mappings
        if m.pid == pid and m.at_ns > 0 and m.data and _mapped(m.name) is Mapped.ANONYMOUS
    ]
    rows.sort()
    every = -(-len(rows) // MAX_EVENTS)
    columns = np.array(rows[:: max(1, every)], np.int64).reshape(-1, len(MemoryEventTable.__struct_fields__)).T
    table = MemoryEventTable(**dict(zip(MemoryEventTable.__struct_fields__, columns, strict=True)))
    if every > 1:
        table.weight[:] *= every
    return table


def _calls_and_faults(recorded: PerfRecording, pid: int, origin_ns: int, window: int) -> list[_Row]:
    kinds = [event_of(event.name)[0] for event in recorded.events]
    with_stack = [event.registers != 0 for event in recorded.events]
    places = _Places(recorded, pid)
    rows: list[_Row] = []
    for sample in recorded.samples:
        if sample.pid != pid:
            continue
        name = kinds[sample.event]
        head = (sample.at_ns - origin_ns, window, pid, sample.tid)
        if name == FAULTS:
            mapped = places.at(sample.address, sample.at_ns)
            rows.append((*head, MemoryEvent.FAULT, sample.address, _PAGE_BYTES, mapped, sample.period))
        elif name in _CALLS and not with_stack[sample.event]:  # those with stacks are among these
            kind = _CALLS[name]
            layout = _ARGUMENTS[kind]
            if len(sample.raw) >= layout.size:
                rows.append(_called(head, kind, layout.unpack_from(sample.raw), sample.period))
    return rows


def _called(head: tuple[int, int, int, int], kind: MemoryEvent, arguments: tuple[int, ...], weight: int) -> _Row:
    """The row of a call."""
    address, *more = arguments[: _NUMBER_OF[kind]]
    size, advice = (*more, -1)[0], more[1] if len(more) > 1 else 0
    return (*head, kind, _signed(address), _signed(size), advice & 0xFFFF, weight)


class _Places:
    """The mappings as they change over time."""

    def __init__(self, recorded: PerfRecording, pid: int) -> None:
        self._mappings = [m for m in recorded.mappings if m.pid == pid]
        self._next = 0
        self._ranges = Ranges()

    def at(self, address: int, at_ns: int) -> Mapped:
        """The kind of mapping at an address; must be called in time order."""
        while self._next < len(self._mappings) and self._mappings[self._next].at_ns <= at_ns:
            new = self._mappings[self._next]
            self._ranges.add(Range(new.start, new.start + new.size, new.offset, new.name))
            self._next += 1
        found = self._ranges.find(address)
        return _mapped(found.name) if found is not None else Mapped.UNKNOWN


def _mapped(name: str) -> Mapped:
    if name.startswith("[stack"):
        return Mapped.STACK
    if name.startswith("[anon"):
        return Mapped.ANONYMOUS
    return _NAMED.get(name, Mapped.FILE if name.startswith("/") else Mapped.UNKNOWN)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
