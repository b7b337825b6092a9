"""The budget for captures: what they may cost, and when the next one may begin.

An account: a job earns ``share`` of its wall time, and each capture is booked with its cost to the job. A capture
without a request begins when the account covers its expected cost; a requested one may overdraw it once: the next one
waits until it is balanced. The cost, spread over the job's time, thus tends to the share.
"""

from __future__ import annotations

import re

from stepscope.tables.errors import UsageError

DEFAULT = "1%"
MAX_SHARE = 0.5
FOREVER_NS = 1 << 62
FIRST_LOOK_OF_NS = 10_000_000_000
"""The first look may cost the share of a job of this length, ahead of its earning; a single step three times as
much."""
FIRST_LOOK_SHARE = 0.01
"""The most that it may cost of such a job: with 1 % for ten steps and 3 % for a single one, a job of ten seconds
keeps the 3 % of decision 0004."""
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


def parse(text: str) -> float:
    """The share in ``--budget``: "1%", "0.5 %", "0.01"; "0" forbids captures without a request.

    Raises:
        UsageError: it is not a share of at most one half.
    """
    match = _SHARE.fullmatch(text)
    share = float(match[1]) / (100.0 if match[2] else 1.0) if match else -1.0
    if not 0.0 <= share <= MAX_SHARE:
        raise UsageError(f"--budget {text}: not a share of the job's time; expected 0% to 50%, such as 1%")
    return share


def first_look_ns(share: float) -> int:
    """What ten steps of the first look may cost under a budget of ``share``; 0: there is none."""
    return int(min(share, FIRST_LOOK_SHARE) * FIRST_LOOK_OF_NS)


def stored(text: str) -> float:
    """The share that a session's manifest states; the default where an older stepscope took any text."""
    try:
        return parse(text or DEFAULT)
    except UsageError:
        return parse(DEFAULT)


class Budget:
    """The account of one job. Times are CLOCK_MONOTONIC nanoseconds."""

    def __init__(self, share: float, began_ns: int, spent_ns: int = 0) -> None:
        """Open the account at ``began_ns``; ``spent_ns`` has been booked already."""
        self.share = share
        self.spent_ns = spent_ns
        self._began_ns = began_ns

    def book(self, cost_ns: int) -> None:
        """Book the cost of a capture."""
        self.spent_ns += max(0, cost_ns)

    def balance_ns(self, now_ns: int) -> int:
        """The time earned and not spent; negative if overdrawn."""
        return int(self.share * (now_ns - self._began_ns)) - self.spent_ns

    def ahead_ns(self, now_ns: int) -> int:
        """The time earned and not spent, or what is left of what a first look may cost ahead of its earning."""
        return max(self.balance_ns(now_ns), first_look_ns(self.share) - self.spent_ns)

    def age_ns(self, now_ns: int) -> int:
        """Time since it was opened."""
        return now_ns - self._began_ns

    def wait_ns(self, now_ns: int, expected_ns: int = 0) -> int:
        """Time until the account covers ``expected_ns``; ``FOREVER_NS`` if it earns nothing."""
        missing = expected_ns - self.balance_ns(now_ns)
        if missing <= 0:
            return 0
        return int(missing / self.share) + 1 if self.share > 0 else FOREVER_NS

    def ratio(self, now_ns: int) -> float:
        """Share of the job's time that captures have cost so far."""
        return self.spent_ns / max(1, now_ns - self._began_ns)
