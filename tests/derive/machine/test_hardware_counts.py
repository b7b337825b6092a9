"""Counters of looks as rates of CPU time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.memory_looks import look, packed

from stepscope.derive.machine import address_space, hardware_counts
from stepscope.report.memory import memory_text
from stepscope.tables.address_space import MemoryLook

FULL = {
    "cpu_ns": 2_000_000_000,
    "cycles": 4_000_000,
    "instructions": 6_000_000,
    "dtlb_load_misses": 900,
    "dtlb_store_misses": 100,
    "llc_load_misses": 50,
    "cache_misses": 70_000,
}


def counted(**counters: int) -> MemoryLook:
    """A look with counters."""
    return replace(look(packed(1)), hardware=counters)


def test_rates_of_cpu_time() -> None:
    """Loads and stores that miss are added; of the cache the counter of the last level counts."""
    found = hardware_counts.build([counted(**FULL)])
    assert found is not None
    assert found.instructions_per_cycle == pytest.approx(1.5)
    assert (found.tlb_misses_per_s, found.cache_misses_per_s) == (500.0, 25.0)
    text = memory_text.render([address_space.build([counted(**FULL)])], width=300)
    assert "1.50 instructions per cycle, 500 TLB misses, 25 misses of the last-level cache per second of CPU" in text


def test_what_a_processor_lacks_is_unknown() -> None:
    """Null, and no line of it; other counters stand in where they say the same."""
    found = hardware_counts.build([counted(cpu_ns=10**9, cycles=9, cache_misses=7)])
    assert found is not None
    assert (found.instructions_per_cycle, found.tlb_misses_per_s, found.cache_misses_per_s) == (None, None, 7.0)


def test_the_newest_look_that_has_them() -> None:
    """A look without counters hides none of before; without any, or without CPU time, nothing is said."""
    found = hardware_counts.build([counted(cpu_ns=5, cycles=1), counted(cpu_ns=9, cycles=1), look(packed(1))])
    assert found is not None
    assert found.cpu_ns == 9
    assert hardware_counts.build([look(packed(1)), counted(cpu_ns=0, cycles=1)]) is None
    assert "processor" not in memory_text.render([address_space.build([look(packed(1))])])
