"""Counters as perf wrote them on several processors."""

from __future__ import annotations

import pytest

from stepscope.native.formats import perf_stat

VIRTUAL = """\
# started on Thu Nov 26 00:32:05 2026

0.85;msec;task-clock;846587;100.00;0.004;CPUs utilized
<not supported>;;cycles:u;0;100.00;;
<not supported>;;instructions:u;0;100.00;;
<not supported>;;dTLB-load-misses;0;100.00;;
"""
"""perf 6.1 on a virtual machine without counters."""
SERVER = """\
2004.31;msec;task-clock;2004311287;100.00;1.002;CPUs utilized
5763019874;;cycles:u;582631861;58.24;;
6712345120;;instructions:u;580631065;58.04;1.16;insn per cycle
27183442;;LLC-load-misses:u;579349952;57.91;43.96;of all LL-cache accesses
9873214;;dTLB-load-misses:u;581350815;58.11;;
<not counted>;;dTLB-store-misses:u;0;0.00;;
"""
"""A server, on which events took turns."""
HYBRID = """\
1000000;ns;task-clock;1000000;100.00;;
100;;cpu_atom/cycles/u;10;50.00;;
900;;cpu_core/cycles/u;10;50.00;;
"""
"""A laptop with two kinds of cores, perf 6.8 and later."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VIRTUAL, {"task-clock": 850_000}),
        (
            SERVER,
            {
                "task-clock": 2_004_310_000,
                "cycles": 5_763_019_874,
                "instructions": 6_712_345_120,
                "LLC-load-misses": 27_183_442,
                "dTLB-load-misses": 9_873_214,
            },
        ),
        (HYBRID, {"task-clock": 1_000_000, "cycles": 1000}),
        ("12,5;;task-clock;1;100,00\n", {"task-clock": 12_500_000}),
        ("", {}),
        ("nan;;cycles\n-5;;cycles\n1e30;;cycles\n;;;\nx\n", {}),
    ],
    ids=["virtual", "server", "hybrid", "other-decimal-point", "empty", "damaged"],
)
def test_counts(text: str, expected: dict[str, int]) -> None:
    """What was counted, by event; what was not is missing, and no 0."""
    assert perf_stat.read(text) == expected
