"""What the first call of a kind counts."""

from __future__ import annotations

import pytest

from stepscope.wire.spent import SpentTime


@pytest.mark.parametrize(
    ("calls", "ns"),
    [([], 0), ([60], 0), ([60, 5], 10), ([60, 5, 7], 17), ([4, 5, 7], 16), ([60, 60], 120)],
)
def test_the_first_call_counts_as_much_as_the_second(calls: list[int], ns: int) -> None:
    """At most: what it sets up for all of them is no price; what each call takes is."""
    spent = SpentTime()
    for call in calls:
        spent.add(call)
    assert (spent.ns, spent.calls) == (ns, len(calls))
