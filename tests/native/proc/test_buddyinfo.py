"""Free blocks as kernels write them."""

from __future__ import annotations

import pytest

from stepscope.native.proc import buddyinfo

MANUAL = """\
Node 0, zone      DMA      1      1      1      0      2      1      1      0      1      1      3
Node 0, zone    DMA32     65     47      4     81     52     28     13     10      5      1    404
Node 0, zone   Normal    216     55    189    101     84     38     37     27      5      3    587
"""
"""As in proc_buddyinfo(5), of Linux on x86-64."""
LINUX_6_18 = "Node 0, zone   Normal  15417   7197   3380   1778   1518   1276    993    853    860    498    953 \n"
"""As a virtual machine wrote it: with a blank at the end."""
TWO_NODES = """\
Node 0, zone  Movable      0      0      1
Node 12, zone  Normal 123456     22  10333
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MANUAL, [(0, "DMA", 11, 3), (0, "DMA32", 11, 404), (0, "Normal", 11, 587)]),
        (LINUX_6_18, [(0, "Normal", 11, 953)]),
        (TWO_NODES, [(0, "Movable", 3, 1), (12, "Normal", 3, 10333)]),
        ("", []),
        ("Node 0, zone\nnot at all\n", []),
    ],
)
def test_zones(text: str, expected: list[tuple[int, str, int, int]]) -> None:
    """Every zone has its node, its name and a number for each order, however many there are."""
    found = buddyinfo.read(text)
    assert [(zone.node, zone.zone, len(zone.blocks), zone.blocks[-1]) for zone in found] == expected
