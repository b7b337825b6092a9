"""What a trigger is: it looks at a running job about once a second, at what is cheap to look at.

The whole analysis, which decides, runs rarely because it costs CPU time. A trigger says when it is worth running early,
or which capture would decide something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.collector.captures.reason import Reason

AGAIN_NS = 5_000_000_000
"""Least time between two analyses, and from the beginning to the first, that a trigger asks for."""


class Wish(Struct, frozen=True, kw_only=True):
    """A capture that would decide something."""

    by: Reason
    kind: str
    """ops | native"""


class LastAnalysis(Struct, frozen=True, kw_only=True):
    """The last whole analysis, as far as it matters for another one."""

    at_ns: int = 0
    """0: there was none yet."""
    steps: bool = False
    """It found steps."""


class Trigger(Protocol):
    """Looks at a running job."""

    what: str
    """Name in a status, where looking failed."""

    @property
    def wanted(self) -> tuple[Wish, ...]:
        """Captures that it has asked for so far."""

    def tick(self, now_ns: int, last: LastAnalysis) -> bool:
        """Look; called about once a second. Returns whether the analysis should run now."""
