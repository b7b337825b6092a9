"""Wall time divided among the ops that run at the same time."""

from __future__ import annotations

import numpy as np

from stepscope.derive.optrace import wall_shares


def divided(*spans: tuple[int, int], window: tuple[int, int] = (0, 100)) -> list[float]:
    """The part of each span."""
    start, end = np.array([s for s, _ in spans]), np.array([e for _, e in spans])
    parts = wall_shares.divided(start, end, (np.array([window[0]]), np.array([window[1]])))
    return [float(part) for part in parts]


def test_a_moment_with_two_ops_is_halved() -> None:
    """Parts add up to the time in which any op ran."""
    assert divided((0, 20), (10, 30)) == [15.0, 15.0]


def test_time_outside_of_the_steps_does_not_count() -> None:
    """An op that ends after the last step counts to its end."""
    assert divided((90, 120), (200, 300)) == [10.0, 0.0]


def test_no_op_has_no_time() -> None:
    """Nothing ran."""
    assert divided() == []
