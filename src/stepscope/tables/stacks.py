"""Sampled call stacks of one event, in columns: made by stack readers, kept in the session and drawn as flame graphs.

Frames are interned. Stacks form a tree, as in the Firefox Profiler's stack table: a stack is its caller's stack and one
more frame, so that common parts are shared and totals are sums from the leaves up. A stack is always read root to leaf.
Times are nanoseconds since session start, or since the first sample of a file that has its own clock.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct, field

from stepscope.tables.findings import Diagnostic
from stepscope.tables.records import F64, I64, Table

if TYPE_CHECKING:
    from typing_extensions import Self

UNKNOWN = -1
"""Value in a column of times, threads or stacks for unknown, or none."""


class FrameKind(enum.IntEnum):
    """Kind of a frame's code. Numbers are stored: never reused, never renumbered.

    Readers set what the source states: PYTHON, NATIVE, KERNEL, GENERATED, OTHER. ``derive.stacks.frame_kinds`` refines
    it.
    """

    OTHER = 0
    """Unknown: a process or thread name, or a frame of a file that does not state its kind."""
    PYTHON = 1
    """A Python function; of the user's code, if LIBRARY is distinguished."""
    NATIVE = 2
    """Machine code of a library or program that belongs to none of the kinds below."""
    KERNEL = 3
    GENERATED = 4
    """Machine code made at run time, outside any file: oneDNN's kernels, other just-in-time code."""
    INTERPRETER = 5
    """CPython itself."""
    FRAMEWORK = 6
    """TensorFlow, ONNX Runtime, PyTorch, JAX: their own machine code. Linked libraries have separate kinds."""
    MATH = 7
    """NumPy, oneDNN, Eigen, BLAS: the arithmetic."""
    ALLOCATOR = 8
    """malloc and similar functions, the frameworks' pools."""
    LIBRARY = 9
    """A Python function of an installed library, or of the standard library."""

    @classmethod
    def _missing_(cls, value: object) -> FrameKind:
        """Accept a kind of a newer version."""
        del value
        return cls.OTHER


class StackFlag(enum.IntFlag):
    """Facts about a sample's stack. Numbers are stored. Neither WHOLE nor TRUNCATED: the source does not say."""

    WHOLE = 1
    """The stack reaches from the start of its thread to the leaf."""
    TRUNCATED = 2
    """Part of the stack is missing: the unwinder gave up, or the stack was deeper than the kept part."""
    APPROXIMATE = 4
    """Python frames, or callers or the op of generated code, are inferred from samples close in time, or from what ran
    at that moment, not from the sample itself."""
    ATTACHED = 8
    """Generated code without caller information: callers were searched for on the stack. Never WHOLE."""
    WAITING = 16
    """The thread was on no CPU. Of the agent's Python stacks alone; never stored."""
    CPU_CLOCK = 32
    """Taken by the thread's CPU clock: its weight is CPU time. Of the agent's Python stacks alone; never stored."""


class Frame(NamedTuple):
    """A place in code. Equal frames are one frame."""

    function: str
    """Function as shown; without a known symbol, its container: "[libz.so.1]", "[unknown]"."""
    file: str = ""
    """Source file."""
    line: int = 0
    """Executed line, 0 unknown."""
    module: str = ""
    """Library or program, as a path if known; "[kernel]" for the kernel."""
    kind: FrameKind = FrameKind.OTHER
    resolved: bool = True
    """Flag: false if ``function`` is a stand-in for an unknown symbol."""


class Thread(NamedTuple):
    """The thread of a stack."""

    pid: int = 0
    """Process id; 0 unknown."""
    tid: int = 0
    """Thread id of the kernel; 0 unknown."""
    name: str = ""


class StackTable(Table, frozen=True, kw_only=True):
    """The tree of stacks. int64[stack]. A stack's caller comes before it."""

    parent: I64
    """Caller's stack, -1 for a root."""
    frame: I64
    """Leaf of this stack, an index into the frames."""


class SampleTable(Table, frozen=True, kw_only=True):
    """Samples, or sums of samples with the same stack. int64[sample], ``weight`` float64[sample]."""

    at_ns: I64
    """Time of the sample; -1 unknown, as for sums."""
    thread: I64
    """Index into the threads, -1 unknown."""
    stack: I64
    """Index into the stacks; -1: a sample with no frame at all."""
    weight: F64
    """Amount of the event that it stands for, in the profile's unit; whole numbers up to 2^53 are exact."""
    count: I64
    """Number of samples that this row sums; 0 unknown."""
    flags: I64
    """Flags, see ``StackFlag``."""
    op_thread: I64
    """Value of ``pthread_self()`` in the thread whose op the sample works for: its own, or the one that a pool's thread
    works for; 0 unknown. Since 0.1."""

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        none = np.empty(0, np.int64)
        return cls(
            at_ns=none,
            thread=none,
            stack=none,
            weight=np.empty(0, np.float64),
            count=none,
            flags=none,
            op_thread=none,
        )

    def summed(self) -> Self:
        """One row per thread, stack and flags, in order of first appearance; times and op threads are dropped.

        A count is unknown if one of its parts is.
        """
        if not len(self):
            return self
        values, flags = np.unique(self.flags, return_inverse=True)
        threads_first = (self.thread + 1) * (int(self.stack.max()) + 2) + self.stack + 1
        kept, group = _groups(threads_first * len(values) + flags)
        unknown = np.bincount(group, self.count == 0) > 0
        counts = np.bincount(group, self.count).astype(np.int64)
        return type(self)(
            at_ns=np.full(len(kept), UNKNOWN, np.int64),
            thread=self.thread[kept],
            stack=self.stack[kept],
            weight=np.bincount(group, self.weight).astype(np.float64),
            count=np.where(unknown, 0, counts),
            flags=self.flags[kept],
            op_thread=np.zeros(len(kept), np.int64),
        )


_DENSE = 8
"""Ratio of range to count up to which numbers are looked up in a table, which is faster than sorting."""


def _groups(numbers: I64) -> tuple[I64, I64]:
    """First position of each distinct number (none negative), rising; and the index of the distinct number for each."""
    size = int(numbers.max()) + 1
    if size > _DENSE * len(numbers):
        _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
        by_time = np.argsort(first)
        rank = np.empty(len(first), np.int64)
        rank[by_time] = np.arange(len(first))
        return first[by_time], rank[group]
    rows = np.arange(len(numbers))
    first = np.full(size, len(numbers), np.int64)
    first[numbers[::-1]] = rows[::-1]  # of equal numbers the last write remains
    starts = np.flatnonzero(first[numbers] == rows)
    rank = np.empty(size, np.int64)
    rank[numbers[starts]] = np.arange(len(starts))
    return starts, rank[numbers]


class StackProfile(Struct, frozen=True, kw_only=True):
    """All samples of one event.

    Raises:
        ValueError: an index points outside its table, or a stack comes before its caller.
    """

    event: str
    """Event as the source names it: "cpu", "page-faults", "madvise", "python" ..."""
    unit: str
    """Unit of weights: "ns", "bytes", "samples", or the counted thing ("page-faults"); "" unknown."""
    name: str = ""
    """Name that distinguishes profiles of one source, if the event does not."""
    frames: Sequence[Frame] = ()
    stacks: StackTable = field(default_factory=StackTable.empty)
    samples: SampleTable = field(default_factory=SampleTable.empty)
    threads: Sequence[Thread] = ()
    begin_ns: int = UNKNOWN
    end_ns: int = UNKNOWN
    """End of the observed window; -1 unknown."""
    lost: int = 0
    """Number of samples that the source reports as lost."""
    unread: int = 0
    """Number of lines or records of the source that are not a stack, or are damaged, and are omitted."""
    diagnostics: Sequence[Diagnostic] = ()
    """Diagnostics: what could not be read, and what is unreliable."""

    def __post_init__(self) -> None:
        """Check the tables against each other: profiles also come from foreign files."""
        stacks, samples = self.stacks, self.samples
        if np.any(stacks.parent >= np.arange(len(stacks))) or np.any(stacks.parent < UNKNOWN):
            raise ValueError("a stack's caller must stand before it")
        for what, column, size in (
            ("frame", stacks.frame, len(self.frames)),
            ("stack", samples.stack, len(stacks)),
            ("thread", samples.thread, len(self.threads)),
        ):
            least = 0 if what == "frame" else UNKNOWN
            if len(column) and (int(column.min()) < least or int(column.max()) >= size):
                raise ValueError(f"index of a {what} from {column.min()} to {column.max()}, expected below {size}")
        if not np.all(np.isfinite(samples.weight)) or np.any(samples.weight < 0):
            raise ValueError("weights must be finite and not negative")

    def frames_of(self, stack: int) -> tuple[Frame, ...]:
        """The frames of a stack, root to leaf; none for -1."""
        return tuple(self.frames[i] for i in self.frame_ids_of(stack))

    def frame_ids_of(self, stack: int) -> tuple[int, ...]:
        """The frames of a stack as indices into ``frames``."""
        ids = []
        while stack != UNKNOWN:
            ids.append(int(self.stacks.frame[stack]))
            stack = int(self.stacks.parent[stack])
        return tuple(reversed(ids))

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.samples.weight.sum())


_FRAME_BITS = 32
"""Bits of a frame in a stack's key: above them is its caller's number, counted from 1."""


class StackBuilder:
    """Interns frames and stacks while a source is read.

    Sources count equal raw stacks first and intern each of them once; samples are columns that the source already has.
    """

    def __init__(self) -> None:
        """Begin without frames and stacks."""
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[int, int] = {}
        """Stacks by caller and frame in one number: pairs would keep Python's garbage collector busy."""

    def frame(self, frame: Frame) -> int:
        """The number of a frame."""
        return self._frames.setdefault(frame, len(self._frames))

    def child(self, parent: int, frame: int) -> int:
        """The stack of ``frame`` called from the stack ``parent`` (-1: a root)."""
        return self._stacks.setdefault(parent + 1 << _FRAME_BITS | frame, len(self._stacks))

    def stack(self, frames: Iterable[int], *, parent: int = UNKNOWN) -> int:
        """The stack of frames, root to leaf, below the stack ``parent``; ``parent`` itself if there are none."""
        known = self._stacks
        for frame in frames:
            parent = known.setdefault(parent + 1 << _FRAME_BITS | frame, len(known))
        return parent

    def stack_of(self, frames: Iterable[Frame], *, parent: int = UNKNOWN) -> int:
        """The stack of frames that have no number yet."""
        return self.stack(map(self.frame, frames), parent=parent)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All frames, in the order of their numbers."""
        return tuple(self._frames)

    @property
    def stacks(self) -> StackTable:
        """All stacks, in the order of their numbers."""
        if not self._stacks:
            return StackTable.empty()
        keys = np.fromiter(self._stacks, np.int64, len(self._stacks))
        return StackTable(parent=(keys >> _FRAME_BITS) - 1, frame=keys & (1 << _FRAME_BITS) - 1)
