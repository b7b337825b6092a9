"""What hardware counters say about a process, from looks at its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.report.machine.memory_map import HardwareCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.tables.address_space import MemoryLook

_TLB = ("dtlb_load_misses", "dtlb_store_misses")
_CACHE = ("llc_load_misses", "cache_misses")
"""Of these the first that is counted: the second also has misses of other caches on some processors."""


def build(looks: Sequence[MemoryLook]) -> HardwareCounts | None:
    """From the newest look with counters; None if there is none, or the process did not run meanwhile."""
    counted = next((look.hardware for look in reversed(looks) if look.hardware.get("cpu_ns")), None)
    if counted is None:
        return None
    cycles, instructions = counted.get("cycles"), counted.get("instructions")
    return HardwareCounts(
        cpu_ns=counted["cpu_ns"],
        instructions_per_cycle=instructions / cycles if cycles and instructions is not None else None,
        tlb_misses_per_s=_per_s(counted, sum(counted[name] for name in _TLB if name in counted), _TLB[0]),
        cache_misses_per_s=_per_s(counted, next((counted[name] for name in _CACHE if name in counted), 0), *_CACHE),
    )


def _per_s(counted: Mapping[str, int], misses: int, *names: str) -> float | None:
    """Misses per second of CPU time; None if none of the names is counted."""
    return misses * 1e9 / counted["cpu_ns"] if any(name in counted for name in names) else None
