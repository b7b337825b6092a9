"""The best order of a link: exact for its rate, and never later than what came."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.derive.optrace.exchange.best_order import Sent, arrivals


def sent(start: int, end: int, size: int, after: int) -> Sent:
    """One tensor, in short."""
    return Sent(start_ns=start, end_ns=end, size_bytes=size, after_ns=after)


def test_the_most_urgent_comes_first_at_the_rate_of_the_link() -> None:
    """Three equal tensors of which the most urgent came last."""
    came = arrivals([sent(0, 300, 10, 90), sent(0, 100, 10, 10), sent(0, 200, 10, 50)])
    assert came == pytest.approx([100, 300, 200])


def test_what_shared_the_link_comes_one_after_the_other() -> None:
    """Two tensors that came at the same end, as each had half of the link."""
    assert arrivals([sent(0, 200, 10, 1), sent(0, 200, 10, 2)]) == pytest.approx([200, 100])


def test_nothing_comes_before_it_could_be_sent() -> None:
    """An urgent one that is ready late interrupts, and the link rests between two busy times."""
    came = arrivals([sent(0, 400, 30, 1), sent(100, 200, 10, 9), sent(1_000, 1_050, 5, 99)])
    assert came == pytest.approx([400, 200, 1_050])


def test_one_that_waited_alone_does_not_set_the_rate() -> None:
    """A tensor of one byte was on its way for long; what came afterwards came fast, and comes no later than it did."""
    assert max(arrivals([sent(0, 1_000, 1, 5), sent(900, 1_200, 30, 5)])) == pytest.approx(1_200)


def test_signals_without_bytes_keep_their_times() -> None:
    """A link on which nothing was sent has no rate."""
    assert arrivals([sent(0, 7, 0, 1), sent(3, 9, 0, 2)]) == [7, 9]


tensors = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(1, 20), st.integers(0, 100)), min_size=1, max_size=4
)


@given(tensors)
def test_no_order_ends_sooner(drawn: list[tuple[int, int, int, int]]) -> None:
    """Of all orders in which one tensor is sent after the other, none ends before the best one."""
    every = [sent(start, start + dur, size, after) for start, dur, size, after in drawn]
    came = arrivals(every)
    best = max(at + one.after_ns for at, one in zip(came, every, strict=True))
    if len({one.start_ns for one in every}) > 1:  # the rate of more than one busy time is not known here
        return
    span = max(one.end_ns for one in every) - every[0].start_ns
    rate = sum(one.size_bytes for one in every) / span
    for order in permutations(every):
        at, end = float(every[0].start_ns), 0.0
        for one in order:
            at += one.size_bytes / rate
            end = max(end, at + one.after_ns)
        assert best <= end + 1e-6


@given(tensors)
def test_all_has_come_when_the_last_did(drawn: list[tuple[int, int, int, int]]) -> None:
    """Another order sends no more than was sent."""
    every = [sent(start, start + dur, size, after) for start, dur, size, after in drawn]
    assert max(arrivals(every)) <= max(one.end_ns for one in every) + 1e-6
