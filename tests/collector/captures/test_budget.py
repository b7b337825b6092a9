"""The budget of captures is arithmetic: what is earned, what is spent, when the next one may begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.collector.captures.budget import FOREVER_NS, Budget, parse
from stepscope.tables.errors import UsageError

S = 1_000_000_000
MS = 1_000_000


@pytest.mark.parametrize(
    ("text", "share"), [("1%", 0.01), ("0.5 %", 0.005), (" 2.5% ", 0.025), ("0.01", 0.01), ("0", 0.0), ("50%", 0.5)]
)
def test_shares_are_read(text: str, share: float) -> None:
    """Percent or a plain number."""
    assert parse(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "much", "-1%", "51%", "1", "nan", "1e-2", "1 % %", "inf%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    """The message says what was got and what is expected."""
    with pytest.raises(UsageError, match="expected 0% to 50%"):
        parse(text)


def test_a_job_earns_by_its_time() -> None:
    """One percent of 100 s is one second."""
    account = Budget(0.01, 7 * S)
    assert account.balance_ns(107 * S) == 1 * S
    assert account.wait_ns(107 * S, 1 * S) == 0
    assert account.wait_ns(107 * S, 2 * S) == pytest.approx(100 * S, abs=2)


def test_who_overdraws_waits_until_it_is_balanced() -> None:
    """Half a second spent after 10 s at 1 %: balanced after 50 s."""
    account = Budget(0.01, 0)
    account.book(500 * MS)
    assert account.balance_ns(10 * S) == -400 * MS
    assert account.wait_ns(10 * S) == pytest.approx(40 * S, abs=2)
    assert account.wait_ns(50 * S) == 0
    assert account.ratio(50 * S) == pytest.approx(0.01)


def test_noise_earns_nothing() -> None:
    """A capture whose steps seem faster gives no credit."""
    account = Budget(0.01, 0)
    account.book(-5 * S)
    assert account.spent_ns == 0


def test_without_a_share_nothing_is_ever_due() -> None:
    """Nothing earned, nothing spent: what is asked for may begin, what costs never may."""
    account = Budget(0.0, 0)
    assert account.wait_ns(100 * S) == 0
    assert account.wait_ns(100 * S, 1) == FOREVER_NS


def test_what_an_earlier_sidecar_spent_counts() -> None:
    """A sidecar that is started again goes on with the account."""
    assert Budget(0.01, 0, 3 * S).wait_ns(100 * S) > 0


@given(
    share=st.floats(0.001, 0.5),
    costs=st.lists(st.integers(1, 2 * S), min_size=1, max_size=40),
    expected=st.integers(0, 2 * S),
)
def test_spaced_captures_hold_the_share(share: float, costs: list[int], expected: int) -> None:
    """Captures that begin when the account allows it cost the share of the time, and one capture more at most."""
    account = Budget(share, 0)
    now = 0
    for cost in costs:
        now += account.wait_ns(now, expected)
        account.book(cost)
        now += cost
    assert account.spent_ns <= share * now + max(costs) + len(costs)
