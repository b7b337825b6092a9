"""Why memory is faulted in again, from a window of native sampling that recorded page faults and the calls that give
memory back.

Each sampled fault is joined to the newest earlier call that gave its address back: an allocator's madvise, a munmap
(with a new mapping over it), or the end of the heap moving below it. The stacks name the code that faults and the code
that gives back. Where steps were recorded, only events between the first and the last steady step count, because a
window may begin in the warm-up and end with the process.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec import Struct

from stepscope.derive.stacks.op_of_pool_thread import with_ops_of_pool_threads
from stepscope.derive.stacks.session_stacks import within
from stepscope.readers import native_names
from stepscope.tables.records import Mapped, MemoryEvent
from stepscope.tables.stacks import FrameKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64, MemoryEventTable
    from stepscope.tables.stacks import Frame, StackProfile

ADVICE = {4: "MADV_DONTNEED", 8: "MADV_FREE"}
"""Advice values of madvise(2) that give memory back."""
K = TypeVar("K", str, tuple[str, str, str])
MIN_FAULTS = 30
"""Fewer sampled faults than this do not support shares."""
MIN_CPU_SAMPLES = 50
CALLS = ("madvise", "munmap", "brk")
_FAULT_ENTRIES = frozenset({"asm_exc_page_fault", "exc_page_fault", "page_fault", "do_page_fault", "do_mem_abort"})
_GIVING_BACK = ("madvise", "munmap", "sys_brk", "do_brk")
_COPYING = frozenset({"do_wp_page", "wp_page_copy"})
_Z = 1.96
_WRAPPERS = frozenset(
    {"__madvise", "madvise", "__munmap", "munmap", "brk", "__brk", "sbrk", "__sbrk", "__default_morecore"}
)
_ALLOCATORS = ("libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc", "libc.so", "libc-2.", "ld-musl")


class Site(Struct, frozen=True, kw_only=True):
    """A call site that gives memory back."""

    call: str
    """madvise | munmap | brk"""
    library: str
    """File name of the library whose code made the call: the allocator."""
    caller: str
    """The function above the allocator; "" if unknown."""
    calls: float
    """Number of calls that the samples stand for; 0: perf did not record them, it is known by samples of CPU time."""


class FaultCauses(Struct, frozen=True, kw_only=True):
    """Causes of the faults of one window. Shares are ratios."""

    pid: int
    window: int
    span_ns: int
    sampled: int
    """Number of sampled faults."""
    faults: float
    """Number of faults that the samples stand for."""
    causes: Mapping[str, float]
    """Share of faults by why the page was missing: "MADV_DONTNEED", "MADV_FREE", "munmap", "heap trim", "new map",
    "file", "copy on write", "first touch or before the window"."""
    leaf: str
    """The code in which most faults happen."""
    leaf_ratio: float
    op: str
    """The framework function for which most faults happen; "" for none."""
    thread: str
    """Name of the thread on which most faults happen."""
    fault_ratio: float | None
    """Share of CPU time below the kernel's page fault handler, by samples; None without kernel samples."""
    low: float
    high: float
    """95 % interval of ``fault_ratio`` (binomial)."""
    release_ratio: float
    """Share of CPU time in calls that give memory back."""
    cpu_samples: int
    sites: tuple[Site, ...]
    """Call sites that give memory back, the most frequent first."""
    bytes_back: float
    """Bytes that calls gave back, within the window."""
    map_bytes: float
    """Median size of the maps made within the window; 0 without any."""

    @property
    def main(self) -> tuple[str, float]:
        """The most frequent cause and its share."""
        return max(self.causes.items(), key=lambda item: item[1])


def build(session: Session, steps: Steps | None = None) -> FaultCauses | None:
    """Causes from the newest window with enough faults; None if there is none."""
    span = steps.span if steps is not None and steps.steady_count else None
    events, stacks = session.memory_events, with_ops_of_pool_threads(session.stacks)
    for window in sorted({int(w) for w in np.unique(events.window)}, reverse=True):
        mine = events.take(events.window == window)
        faults = mine.take(mine.kind == MemoryEvent.FAULT)
        if span is not None:
            faults = faults.take((faults.at_ns >= span[0]) & (faults.at_ns < span[1]))
        if len(faults) >= MIN_FAULTS:
            seen = [p for p in stacks if p.name == f"window {window}"]
            profiles = {p.event: within(p, [span]) if span is not None else p for p in seen}
            return _of_window(window, mine, faults, profiles)
    return None


def _of_window(
    window: int, events: MemoryEventTable, faults: MemoryEventTable, profiles: Mapping[str, StackProfile]
) -> FaultCauses:
    total = float(faults.weight.sum())
    causes: dict[str, float] = defaultdict(float)
    copied = _copied(profiles.get("page-faults"))
    for cause, weight in zip(_causes(events, faults), faults.weight.tolist(), strict=True):
        causes[cause] += weight
    if copied:
        causes["copy on write"] += copied * total
    everything = sum(causes.values())
    shares = {cause: weight / everything for cause, weight in _most_first(causes)}
    leaf, leaf_ratio, op, thread = _who(profiles.get("page-faults"))
    fault_ratio, low, high, release, samples = _cpu(profiles.get("cpu"))
    back = events.take(np.isin(events.kind, [MemoryEvent.MADVISE, MemoryEvent.MUNMAP]))
    maps = events.take(events.kind == MemoryEvent.MMAP)
    given = (back.kind == MemoryEvent.MUNMAP) | np.isin(back.detail, list(ADVICE))
    return FaultCauses(
        pid=int(faults.pid[0]),
        window=window,
        span_ns=int(events.at_ns[-1] - events.at_ns[0]),
        sampled=len(faults),
        faults=total,
        causes=shares,
        leaf=leaf,
        leaf_ratio=leaf_ratio,
        op=op,
        thread=thread,
        fault_ratio=fault_ratio,
        low=low,
        high=high,
        release_ratio=release,
        cpu_samples=samples,
        sites=_sites(profiles),
        bytes_back=float((back.bytes[given] * back.weight[given]).sum()),
        map_bytes=float(np.median(maps.bytes)) if len(maps) else 0.0,
    )


def _causes(events: MemoryEventTable, faults: MemoryEventTable) -> list[str]:
    """The cause of each sampled fault.

    Cost: faults x calls, vectorised over calls.
    """
    madvise = (events.kind == MemoryEvent.MADVISE) & np.isin(events.detail, list(ADVICE))
    ranges = events.take(madvise | np.isin(events.kind, [MemoryEvent.MUNMAP, MemoryEvent.MMAP]))
    ends = ranges.address + ranges.bytes
    heap = events.take(events.kind == MemoryEvent.BRK)
    found = []
    for at, address, mapped in zip(faults.at_ns.tolist(), faults.address.tolist(), faults.detail.tolist(), strict=True):
        if mapped == Mapped.FILE:
            found.append("file")
            continue
        before = int(np.searchsorted(ranges.at_ns, at, side="right"))
        hits = np.flatnonzero((ranges.address[:before] <= address) & (address < ends[:before]))
        if len(hits):
            found.append(_of_range(ranges, hits))
            continue
        trims = heap.address[: int(np.searchsorted(heap.at_ns, at, side="right"))]
        trimmed = mapped == Mapped.HEAP and bool(((trims > 0) & (trims <= address)).any())
        found.append("heap trim" if trimmed else "first touch or before the window")
    return found


def _of_range(ranges: MemoryEventTable, hits: I64) -> str:
    last = int(hits[-1])
    kind = int(ranges.kind[last])
    if kind == MemoryEvent.MADVISE:
        return ADVICE[int(ranges.detail[last])]
    unmapped = (ranges.kind[hits] == MemoryEvent.MUNMAP).any()
    return "munmap" if unmapped else "new map"


def _by_stack(profile: StackProfile) -> list[tuple[Sequence[Frame], float]]:
    """(frames of the process, root to leaf; weight) of each sampled stack."""
    known = profile.samples.stack >= 0
    weights = np.bincount(profile.samples.stack[known], profile.samples.weight[known])
    return [
        ([f for f in profile.frames_of(int(stack)) if f.kind is not FrameKind.KERNEL], float(weights[stack]))
        for stack in np.flatnonzero(weights)
    ]


def _copied(profile: StackProfile | None) -> float:
    """Share of faults that copy a page after a fork; 0 without kernel frames."""
    if profile is None or not profile.total:
        return 0.0
    below = _below(profile, np.array([frame.function in _COPYING for frame in profile.frames]))
    known = profile.samples.stack >= 0
    copies = profile.samples.weight[known][below[profile.samples.stack[known]]]
    return float(copies.sum()) / profile.total


def _who(profile: StackProfile | None) -> tuple[str, float, str, str]:
    """(leaf, its share, op, thread) of most faults."""
    if profile is None or not profile.total:
        return "", 0.0, "", ""
    leaves: dict[str, float] = defaultdict(float)
    ops: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for frames, weight in _by_stack(profile):
        if frames:
            leaf = native_names.short(frames[-1].function)
            leaves[leaf] += weight
            ops[leaf][native_names.owner(frames)] += weight
    if not leaves:
        return "", 0.0, "", ""
    leaf, weight = _most_first(leaves)[0]
    op = next((name for name, _ in _most_first(ops[leaf]) if name), "")
    threads = np.bincount(profile.samples.thread.clip(0), profile.samples.weight, len(profile.threads))
    thread = profile.threads[int(threads.argmax())].name if len(threads) else ""
    return leaf, weight / profile.total, op, thread


def _cpu(profile: StackProfile | None) -> tuple[float | None, float, float, float, int]:
    """(share of CPU time in faults, low, high, share in calls that give memory back, samples)."""
    if profile is None or not profile.total:
        return None, 0.0, 0.0, 0.0, 0
    names = [f.function if f.kind is FrameKind.KERNEL else "" for f in profile.frames]
    if not any(names):
        return None, 0.0, 0.0, 0.0, len(profile.samples)
    faulting = np.array([name in _FAULT_ENTRIES for name in names])
    giving = np.array([any(part in name for part in _GIVING_BACK) for name in names])
    in_fault, in_giving = _below(profile, faulting), _below(profile, giving)
    weights, stacks = profile.samples.weight, profile.samples.stack
    known = stacks >= 0
    ratio = float(weights[known][in_fault[stacks[known]]].sum()) / profile.total
    release = float(weights[known][(in_giving & ~in_fault)[stacks[known]]].sum()) / profile.total
    count = len(profile.samples)
    spread = _Z * float(np.sqrt(max(ratio * (1 - ratio), 1 / count) / count))
    return ratio, max(0.0, ratio - spread), min(1.0, ratio + spread), release, count


def _below(profile: StackProfile, wanted: np.ndarray) -> np.ndarray:
    """Whether each stack holds one of the wanted frames. bool[stack]; callers come first."""
    found = np.zeros(len(profile.stacks), bool)
    parents, frames = profile.stacks.parent.tolist(), profile.stacks.frame.tolist()
    for i, (parent, frame) in enumerate(zip(parents, frames, strict=True)):
        found[i] = wanted[frame] or (parent >= 0 and found[parent])
    return found


def _sites(profiles: Mapping[str, StackProfile]) -> tuple[Site, ...]:
    counts: dict[tuple[str, str, str], float] = defaultdict(float)
    for call in CALLS:
        profile = profiles.get(call)
        if profile is None:
            continue
        for frames, weight in _by_stack(profile):
            library, caller = _site(frames)
            counts[call, library, caller] += weight
    timed = {} if counts else _timed(profiles.get("cpu"))
    return tuple(
        Site(call=call, library=library, caller=caller, calls=0.0 if timed else weight)
        for (call, library, caller), weight in _most_first(timed or counts)
    )


def _timed(profile: StackProfile | None) -> dict[tuple[str, str, str], float]:
    """CPU time in the calls that give memory back, by (call, library, caller)."""
    times: dict[tuple[str, str, str], float] = defaultdict(float)
    if profile is None:
        return times
    known = profile.samples.stack >= 0
    weights = np.bincount(profile.samples.stack[known], profile.samples.weight[known])
    for stack in np.flatnonzero(weights):
        frames = profile.frames_of(int(stack))
        inside = [f.function for f in frames if f.kind is FrameKind.KERNEL]
        giving = next((name for name in inside if any(part in name for part in _GIVING_BACK)), "")
        if giving and _FAULT_ENTRIES.isdisjoint(inside):
            call = next(call for call in CALLS if call in giving)
            library, caller = _site([f for f in frames if f.kind is not FrameKind.KERNEL])
            times[call, library, caller] += float(weights[stack])
    return times


def _most_first(weights: Mapping[K, float]) -> list[tuple[K, float]]:
    return sorted(weights.items(), key=lambda item: -item[1])


def _site(frames: Sequence[Frame]) -> tuple[str, str]:
    """(library that made the call, function above the allocator)."""
    inner = list(frames)
    while inner and inner[-1].function in _WRAPPERS:
        inner.pop()
    library = inner[-1].module.rpartition("/")[2] if inner else ""
    while inner and (inner[-1].module == (frames[-1].module if frames else "") or _is_allocator(inner[-1])):
        inner.pop()
    return library, native_names.short(inner[-1].function) if inner else ""


def _is_allocator(frame: Frame) -> bool:
    return frame.module.rpartition("/")[2].startswith(_ALLOCATORS)
