"""What a page fault costs is measured on this host, rarely."""

from __future__ import annotations

import resource
from pathlib import Path

from stepscope.collector.samplers.fault_cost import FIRST_ROUNDS, LATER_EVERY, ROUND_BYTES, FaultProbe


def test_a_round_faults_its_pages_in_and_gives_them_back() -> None:
    """Each round makes as many faults as it has pages, and its cost is a plausible time."""
    probe = FaultProbe()
    probe.look()
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        cost = probe.look()
        made = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        assert cost is not None
        assert made >= ROUND_BYTES // resource.getpagesize()
        assert 20 < cost.fault_ns < 1_000_000
        assert 0 <= cost.release_ns < 1_000_000


def test_a_huge_page_costs_more_than_a_small_one() -> None:
    """Where the kernel gives one when asked, its fault zeroes 512 times as much; else nothing is said."""
    cost = FaultProbe().look()
    assert cost is not None
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text("ascii"):
        assert (cost.huge_fault_ns, cost.huge_release_ns) == (-1, -1)
    elif cost.huge_fault_ns >= 0:  # a host without a free one may refuse
        assert cost.huge_fault_ns > 5 * cost.fault_ns
        assert cost.huge_release_ns >= 0


def test_rounds_are_few() -> None:
    """A round at each of the first looks, then one in thirty."""
    probe = FaultProbe()
    measured = [probe.look() is not None for _ in range(FIRST_ROUNDS + 3 * LATER_EVERY)]
    assert all(measured[:FIRST_ROUNDS])
    assert sum(measured[FIRST_ROUNDS:]) == 3
