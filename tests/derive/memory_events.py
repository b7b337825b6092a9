"""Page faults, calls that change mappings, and stacks of both: the test chooses which and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.tables.records import Mapped, MemoryEvent, MemoryEventTable
from stepscope.tables.stacks import Frame, FrameKind, SampleTable, StackBuilder, StackProfile, Thread

PAGE = 4096
BLOCK = 0x100000
FAULT, MADVISE, MUNMAP, MMAP, BRK = (
    *(MemoryEvent.FAULT, MemoryEvent.MADVISE, MemoryEvent.MUNMAP),
    *(MemoryEvent.MMAP, MemoryEvent.BRK),
)
Row = tuple[int, MemoryEvent, int, int, int]


def events(rows: Sequence[Row], window: int = 1) -> MemoryEventTable:
    """(at, kind, address, bytes, detail) of each."""
    columns = np.array([(at, window, 100, 101, kind, a, b, d, 10) for at, kind, a, b, d in rows], np.int64).T
    return MemoryEventTable(**dict(zip(MemoryEventTable.__struct_fields__, columns, strict=True)))


def faults(count: int, *, start: int = 1000, address: int = BLOCK, mapped: int = Mapped.ANONYMOUS) -> list[Row]:
    return [(start + i, FAULT, address + i * PAGE, PAGE, mapped) for i in range(count)]


def profile(event: str, stacks: Sequence[tuple[Sequence[Frame], float]]) -> StackProfile:
    builder = StackBuilder()
    ids = [builder.stack_of(frames) for frames, _ in stacks]
    count = len(stacks)
    return StackProfile(
        event=event,
        unit="",
        name="window 1",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=SampleTable(
            at_ns=np.zeros(count, np.int64),
            thread=np.zeros(count, np.int64),
            stack=np.array(ids, np.int64),
            weight=np.array([weight for _, weight in stacks], np.float64),
            count=np.ones(count, np.int64),
            flags=np.ones(count, np.int64),
            op_thread=np.zeros(count, np.int64),
        ),
        threads=(Thread(100, 101, "tf_Compute"),),
    )


SIZE = 100 * PAGE


def native(*names: str, module: str = "/x/libtensorflow_cc.so.2") -> list[Frame]:
    return [Frame(name, module=module, kind=FrameKind.NATIVE) for name in names]


def kernel(*names: str) -> list[Frame]:
    return [Frame(name, module="[kernel]", kind=FrameKind.KERNEL) for name in names]


COPY = native("start_thread", "void tensorflow::ConcatCPU<float>(int)", "__memmove_avx512")
FREE = [
    *native("start_thread", "tensorflow::Buffer<float>::~Buffer()"),
    *native("[libjemalloc.so.2]", "[libjemalloc.so.2]", module="/usr/lib/libjemalloc.so.2"),
    *native("__madvise", module="/usr/lib/libc.so.6"),
]
