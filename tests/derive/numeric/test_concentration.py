"""Whether a sum lies in a few of many."""

from __future__ import annotations

import pytest

from stepscope.derive.numeric import concentration


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ([1.0] * 20, ""),
        ([20.0] + [0.1] * 22, "in one of 23 calls"),
        ([20.0] + [1.0] * 22, ""),  # half of it is in the others
        ([0.0] * 19 + [5.0], "in one of 20 calls"),
        ([9.0, 9.0, 9.0] + [0.001] * 997, "in 3 of 1,000 calls"),
        ([1.0, 0.0] * 20, ""),
        ([7.0], ""),  # one of one is each
        ([7.0] + [0.0] * 8, ""),  # so may be every ninth
        ([], ""),
        ([0.0] * 9, ""),
    ],
)
def test_few_of_many(amounts: list[float], said: str) -> None:
    """Most of the sum, in at most a tenth of the amounts; in any order."""
    for order in (amounts, amounts[::-1]):
        found = concentration.few(order)
        assert (found.said("calls") if found is not None else "") == said
