"""Slopes in words: what they mean, what they cost, and why there is none."""

from __future__ import annotations

import msgspec
import pytest
from tests.report.whatif_samples import REPORT

from stepscope.model.slope import WhatIfSlope
from stepscope.report.whatif import page, slopes_text, text

LOAD = WhatIfSlope(
    trial="slopes:train.py:41",
    slope=0.5,
    low=0.42,
    high=0.58,
    pairs=12,
    step_ns=76_000_000,
    place_ns=152_000_000,
    added_ns=20_000_000,
    cost_ns=76_000_000,
    cost_low_ns=63_800_000,
    cost_high_ns=88_200_000,
    how="sleep",
    buffered=3,
    threads=2,
)
NONE = WhatIfSlope(trial="slopes:save", why="save is not called while steps are made")


def test_a_slope_with_its_cost_in_the_terminal_and_on_the_page() -> None:
    """The measured cost is the slope times the place's time; a place without a slope says why."""
    both = msgspec.structs.replace(REPORT, slopes=(LOAD, NONE))
    shown = text.render(both, width=200)
    assert "slope 0.50 (0.42 to 0.58, 95 %): half hidden" in shown
    assert "measured cost: 76 ms of a step of 76 ms, 100 % (63.8 ms to 88.2 ms): slope x 152 ms in the place" in shown
    assert "12 pairs of blocks; 20 ms added to a step, asleep, as it mostly waits; 3 steps buffered" in shown
    assert "no slope: save is not called while steps are made" in shown
    assert "slope 0.50 (0.42 to 0.58, 95 %)" in page.render(both)


def test_places_alone_are_the_answer() -> None:
    """Without other trials the page's headline is what the places cost."""
    alone = msgspec.structs.replace(REPORT, results=(), slopes=(LOAD,))
    assert page.answer(alone).startswith("train.py:41: slope 0.50")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.95, 1.05, "critical path"),
        (-0.05, 0.1, "hidden: others"),
        (1.3, 1.5, "holds others up"),
        (0.3, 0.6, "half hidden"),
        (0.05, 0.3, "about this part"),
    ],
)
def test_what_an_interval_means(low: float, high: float, said: str) -> None:
    """Words follow the interval, not the point."""
    assert said in slopes_text.meaning(msgspec.structs.replace(LOAD, low=low, high=high))
