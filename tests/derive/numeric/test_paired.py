"""Change between runs in pairs."""

import math

import pytest

from stepscope.derive.numeric import paired


def test_what_both_of_a_pair_share_falls_out() -> None:
    host = [1.0, 3.0, 0.5, 7.0]
    found = paired.change([10 * h for h in host], [9 * h for h in host])
    assert found.ratio == pytest.approx(0.9)
    assert found.low == pytest.approx(0.9)
    assert found.high == pytest.approx(0.9)


def test_interval_is_students() -> None:
    """By hand: logarithms -1, 0, 1: mean 0, standard error 1 / sqrt(3), two degrees of freedom."""
    found = paired.change([1.0, 1.0, 1.0], [math.exp(-1), 1.0, math.e])
    assert found.ratio == pytest.approx(1.0)
    assert math.log(found.high) == pytest.approx(4.303 / math.sqrt(3))
    assert math.log(found.low) == pytest.approx(-4.303 / math.sqrt(3))


def test_more_pairs_than_the_table_has() -> None:
    found = paired.change([1.0] * 100, [2.0, 0.5] * 50)
    assert found.low < 1 < found.high


def test_too_few_pairs() -> None:
    with pytest.raises(ValueError, match="2 pairs; expected 3"):
        paired.change([1.0, 1.0], [1.0, 1.0])
