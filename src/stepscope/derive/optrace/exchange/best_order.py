"""When tensors would come over one link at the earliest, if they came in the order in which they are needed.

A link carries one byte after the other. Which order ends soonest, if after each tensor comes work that takes a known
time? Always to send the one with the longest work after it, of those that can be sent, and to interrupt another for it
(Jackson's rule with interruption: exact for one machine with release times and tails, so no order does better).

The rate of a link is that which sends what was sent, in the time that it took: in each time in which something was on
its way, the least rate at which all of it is there at the end, whatever the order. A link that was not always busy
seems slower than it is, as does one that others use too.

Source: Horn, Some simple scheduling algorithms (1974); Carlier, The one-machine sequencing problem (1982). The same
question for parameters: TicTac (Hashemi et al., MLSys 2019).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Sent(Struct, frozen=True, kw_only=True):
    """A tensor that came over a link."""

    start_ns: int
    """When it could be sent."""
    end_ns: int
    """When it had come."""
    size_bytes: int
    after_ns: int
    """Time of the longest chain of work after it."""


def arrivals(sent: Sequence[Sent]) -> list[float]:
    """When each would come, in the order given, if the most urgent always came first."""
    came = [float(one.end_ns) for one in sent]
    for busy in _busy(sent):
        rate = _rate([sent[i] for i in busy])
        if rate > 0:
            _schedule(sent, busy, rate, came)
    return came


def _busy(sent: Sequence[Sent]) -> Iterator[list[int]]:
    """The tensors of each time in which something was on its way."""
    group: list[int] = []
    until = 0
    for i in sorted(range(len(sent)), key=lambda i: sent[i].start_ns):
        if group and sent[i].start_ns > until:
            yield group
            group = []
        until = max(until, sent[i].end_ns) if group else sent[i].end_ns
        group.append(i)
    if group:
        yield group


def _rate(sent: Sequence[Sent]) -> float:
    """Bytes per ns at which everything has come by the end of the last, if the link never rests needlessly."""
    end = max(one.end_ns for one in sent)
    total, rate = 0, 0.0
    for one in sorted(sent, key=lambda one: -one.start_ns):
        total += one.size_bytes
        if end > one.start_ns:
            rate = max(rate, total / (end - one.start_ns))
    return rate


def _schedule(sent: Sequence[Sent], busy: Sequence[int], rate: float, came: list[float]) -> None:
    """Set when the tensors of a busy time come."""
    left = {i: sent[i].size_bytes / rate for i in busy}
    later = sorted(busy, key=lambda i: sent[i].start_ns, reverse=True)
    ready: list[tuple[int, int]] = []
    now = 0.0
    while ready or later:
        if not ready:
            now = max(now, float(sent[later[-1]].start_ns))
        while later and sent[later[-1]].start_ns <= now:
            i = later.pop()
            heapq.heappush(ready, (-sent[i].after_ns, i))
        i = ready[0][1]
        until = now + left[i]
        if later and sent[later[-1]].start_ns < until:
            left[i] -= sent[later[-1]].start_ns - now
            now = float(sent[later[-1]].start_ns)
            continue
        heapq.heappop(ready)
        came[i] = now = until
