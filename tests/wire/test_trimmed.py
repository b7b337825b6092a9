"""The middle of some numbers."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest

from stepscope.wire.trimmed import middle_of


def test_few_numbers_have_their_mean() -> None:
    """Of four none is cut off: mean and standard error are the usual ones."""
    middle, error, freedom = middle_of([4.0, 1.0, 2.0, 6.0])
    assert (middle, freedom) == (fmean([1, 2, 4, 6]), 3)
    assert error == pytest.approx(stdev([1, 2, 4, 6]) / 2)


def test_ends_are_cut_off() -> None:
    """Two of ten at each end count as the nearest that stay."""
    middle, error, freedom = middle_of([-1e9, 1, 2, 3, 4, 5, 6, 7, 8, 1e9])
    assert (middle, freedom) == (4.5, 5)
    assert error == pytest.approx(stdev([2, 2, 2, 3, 4, 5, 6, 7, 7, 7]) / (0.6 * 10**0.5))
