"""Numbers of texts are found, and compared at the digits that are shown."""

from __future__ import annotations

import pytest
from tests.web.numbers import Pool, shown

DOCUMENT = {
    "p50_ns": 63_626_678,
    "ratio": 0.076,
    "peak_bytes": 3 << 30,
    "title": "takes 41.4 ms per batch",
    "steps": 228,
}


def test_numbers_of_a_report_are_known() -> None:
    """Times, shares and sizes in any unit, as rounded; and those within its sentences."""
    text = "step 63.6 ms (0.0636 s), 7.6 % or 8 %, peak 3 GiB, 3,072 MiB; 41.4 ms; train.py:12, 228 steps"
    assert Pool(DOCUMENT).strange(text) == []
    assert len(list(shown(text))) == 7


@pytest.mark.parametrize("other", ["63.5 ms", "7.7 %", "3.1 GiB", "41.5 ms", "2 min 3 s", "228 ms", "64.6 \u00b5s"])
def test_other_numbers_are_strange(other: str) -> None:
    """One digit, or the unit, is another."""
    assert Pool(DOCUMENT).strange(f"the step takes {other}") == [other]
