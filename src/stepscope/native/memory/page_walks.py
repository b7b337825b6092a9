"""Measures what translating addresses costs here: the same random accesses in small and in huge pages.

An access to one line of each page, in random order: the caches see the same lines in both, so that the difference is
the search for the page, in the page tables and in what the processor keeps of them. Each access waits for the one
before. In programs misses overlap, so this is the most that one can cost. It runs in a process that ends afterwards,
with up to 1 GiB of memory, never while a job is measured.

Source: docs/decisions/0055-tlb-bound.md.
"""

from __future__ import annotations

import mmap
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.native import own_python
from stepscope.native.cgroups import cgroup
from stepscope.native.memory.chase import Chase
from stepscope.tables.errors import TargetError
from stepscope.tables.page_walks import PageWalks, WalkPoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

SIZES = tuple(megabytes << 20 for megabytes in (4, 16, 64, 256, 512))
MEMORY_RATIO = 1 / 8
"""Largest share of the available memory that is taken."""
ROUNDS, MIN_ROUNDS, ACCESSES = 9, 3, 20_000
"""Rounds for each size and kind of page, in turns; an access takes up to 0.3 us. Fewer rounds if the time is up."""
ENOUGH_S = 3.0
"""Time after which no larger size is begun: all of it takes 1.6 s of CPU time."""
UPPER = 0.75
"""Quantile of the differences: a bound has to hold."""
MANY_FAULTS = 8
"""Faults for each huge page above which the memory is not in huge pages: up to 512 if none is given."""
SECONDS = 8.0
"""Time after which the measuring process is ended."""
_HUGE_SIZE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")


def run() -> PageWalks:
    """What the measuring process says; a problem if it fails."""
    began = time.monotonic_ns()
    command, environment = own_python.command(__name__), own_python.environment()
    try:
        text = subprocess.check_output(
            command, timeout=SECONDS, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        found = msgspec.json.decode(text, type=PageWalks)
    except subprocess.TimeoutExpired:
        found = PageWalks(problem="it took longer than its time")
    except (OSError, subprocess.CalledProcessError, msgspec.DecodeError) as error:
        found = PageWalks(problem=f"the measuring process failed: {error}")
    return msgspec.structs.replace(found, wall_ns=time.monotonic_ns() - began)


def main(_: Sequence[str] = ()) -> None:
    """The measuring process."""
    sys.stdout.buffer.write(msgspec.json.encode(measure(SIZES)))


def measure(sizes: Sequence[int], seconds: float = ENOUGH_S) -> PageWalks:
    """Measure here and now, at those of the sizes that memory is available for, until the time is up."""
    until = time.monotonic() + seconds
    limit = _available_bytes() * MEMORY_RATIO / 2
    sizes = [size for size in sizes if size <= limit]
    if not sizes:
        return PageWalks(problem="too little memory is available")
    points: list[WalkPoint] = []
    try:
        huge_bytes = int(_HUGE_SIZE.read_text("ascii"))
        chase, small, huge = Chase(), _mapped(sizes[-1], 0), _mapped(sizes[-1], huge_bytes)
        for before, size in zip((0, *sizes), sizes, strict=False):
            _touch(small[before:size], 0)
            _touch(huge[before:size], huge_bytes)
            points.append(_point(chase, small[:size], huge[:size], until))
            if time.monotonic() > until:
                break
    except (OSError, ValueError, TargetError) as error:
        return PageWalks(problem=str(error))
    complete = len(points) == len(sizes)
    return PageWalks(page_bytes=mmap.PAGESIZE, huge_page_bytes=huge_bytes, points=tuple(points), complete=complete)


def _mapped(size: int, huge_bytes: int) -> npt.NDArray[np.uint8]:
    """Memory that is not present yet, for huge pages of this size or small ones (0).

    Raises:
        OSError: there is none, or no such advice.
    """
    memory = mmap.mmap(-1, size + huge_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge_bytes else mmap.MADV_NOHUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    first = -whole.ctypes.data % huge_bytes if huge_bytes else 0
    return whole[first : first + size]


def _touch(memory: npt.NDArray[np.uint8], huge_bytes: int) -> None:
    """Make it present, with zeros.

    Raises:
        TargetError: the kernel gave no huge pages.
    """
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    memory[:: mmap.PAGESIZE] = 0
    faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    if huge_bytes and faults > MANY_FAULTS * -(-len(memory) // huge_bytes):
        raise TargetError("the kernel gave no huge pages to compare with")


def _point(chase: Chase, small: npt.NDArray[np.uint8], huge: npt.NDArray[np.uint8], until: float) -> WalkPoint:
    rounds: list[tuple[float, float]] = []
    for seed in range(ROUNDS + 1):
        rounds.append((_ns(chase, small, seed), _ns(chase, huge, seed)))
        if len(rounds) > MIN_ROUNDS and time.monotonic() > until:
            break
    times = np.array(rounds[1:])  # without the first: it fills the caches
    slow, fast = np.median(times, axis=0)
    walk = max(0.0, float(np.quantile(times[:, 0] - times[:, 1], UPPER)))
    return WalkPoint(bytes=len(small), small_ns=float(slow), huge_ns=float(fast), walk_ns=walk)


def _ns(chase: Chase, memory: npt.NDArray[np.uint8], seed: int) -> float:
    """CPU time of an access: others that have the CPU do not count."""
    began = time.thread_time_ns()
    chase.run(memory, ACCESSES, seed)
    return (time.thread_time_ns() - began) / ACCESSES


def _available_bytes() -> int:
    """What the host has, and what the tightest control group leaves."""
    words = Path("/proc/meminfo").read_text("ascii").split()
    host = int(words[words.index("MemAvailable:") + 1]) << 10
    groups = [(cgroup.memory_limit(folder), folder) for folder in cgroup.folders("self", "memory")]
    left = [
        limit - max(cgroup.number(folder / "memory.current"), cgroup.number(folder / "memory.usage_in_bytes"))
        for limit, folder in groups
        if limit > 0
    ]
    return min([host, *left])
