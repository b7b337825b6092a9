"""Whether the input comes over the network, whether the link is saturated, and whether it is ever idle.

Three things look alike in a chart of bytes per second and are distinguished here. A saturated link delivers all the
time while the steps wait, and its data is read at once. A reader that is too slow (decoding, interpreter) also makes a
steady stream, but data lies unread in the kernel. A reader that requests one piece after another leaves gaps on the
link while the steps compute.

Serves choppy_network_input and network_input_at_capacity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.system import resources
from stepscope.derive.machine import counters

if TYPE_CHECKING:
    from stepscope.causes.system.resources import LookIntervals, Resources
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64

ON_RATIO = 0.25
"""Share of the link's usual busy rate (95th percentile): an interval with less is a gap."""
MIN_IN = 100_000.0
"""Bytes per second: less is not a significant input of a step."""
UNREAD_S = 0.005
"""Data unread for longer than this at the link's rate (at least 64 KiB) means that the reader does not keep up."""
MIN_UNREAD = 65_536
FULL_ON = 0.85
"""The link is saturated if it delivers in this share of the waiting time; gaps shorter than a look do not show."""
FULL_LINK = 0.85
"""Of a link's stated speed: headers and acknowledgements take the rest."""
MAX_UNREAD = 0.34
"""Unread data in more of the looks than this: the reader is the limit."""
MIN_JOB = 0.5
"""The process's own connections must account for this share of what arrives."""
MIN_CONTRAST = 0.4
"""The link delivers in this much more of the waiting time than of the other time: the steps wait for it."""
MIN_OVERLAP = 0.1
"""Share of the time that overlapping would save; less is negligible."""


class Rhythm(Struct, frozen=True, kw_only=True):
    """Bursts and gaps of the link against the waiting of the steps."""

    on_waiting_ratio: float
    """Share of the waiting time in which the link delivers."""
    on_working_ratio: float
    """Share of the other time in which it does."""
    gap_ratio: float
    """Share of all time in which the link is idle."""
    overlap_ratio: float
    """Share of the time that would be saved if the link delivered while the steps compute: the smaller of waiting for
    the link and computing while it is idle."""
    interval_s: float
    """Length of the intervals in which this was observed."""


class Network(Struct, frozen=True, kw_only=True):
    """The network during the steady steps. Rates in bytes a second."""

    mean_in: float
    busy_in: float
    """90th percentile: the rate while it delivers."""
    steadiness: float
    """Lowest over typical: the 10th percentile of the seconds' rates over the 90th."""
    link: float
    """Speed of the link as its driver states it; -1 unknown."""
    job_ratio: float | None
    """Share of the received bytes that the process's own connections account for; None if the kernel does not say."""
    unread_ratio: float | None
    """Share of the looks at those connections that found unread data; None for fewer than two looks."""
    on_ratio: float | None
    """Share of the close looks in which the link delivered while the steps waited; None without close looks."""
    rhythm: Rhythm | None

    @property
    def is_full(self) -> bool | None:
        """Whether the link delivers as much as it can to this process while the steps wait; None if unknown."""
        if self.link > 0 and self.mean_in >= FULL_LINK * self.link:
            return True
        if self.unread_ratio is not None and self.unread_ratio > MAX_UNREAD:
            return False
        if self.on_ratio is not None and self.on_ratio < FULL_ON:
            return False
        if self.job_ratio is not None and self.job_ratio < MIN_JOB:
            return False
        return None if None in (self.on_ratio, self.unread_ratio, self.job_ratio) else True

    @property
    def is_choppy(self) -> bool:
        """Whether waiting for the link alternates with computing while it is idle."""
        rhythm = self.rhythm
        if rhythm is None or rhythm.overlap_ratio < MIN_OVERLAP:
            return False
        return rhythm.on_waiting_ratio - rhythm.on_working_ratio >= MIN_CONTRAST


def build(view: StepsView) -> Network | None:
    """None if nothing came over a network."""
    used = view.get(resources.build)
    if used is None or used.wire is None:
        return None
    rates = used.looks.net_in
    mean = used.looks.mean(rates)
    if mean < MIN_IN:
        return None
    busy = float(np.percentile(rates, 90))
    return Network(
        mean_in=mean,
        busy_in=busy,
        steadiness=float(np.percentile(rates, 10)) / busy if busy > 0 else 0.0,
        link=used.wire.speed_bytes_s,
        job_ratio=_job_ratio(used),
        unread_ratio=_unread_ratio(used, busy),
        on_ratio=_on_ratio(used.bursts),
        rhythm=_rhythm(used),
    )


def _job_ratio(resources: Resources) -> float | None:
    process, wire = resources.process, resources.wire
    if wire is None or len(process) < counters.DIFFERENCE or int(process.tcp_rx_bytes.min()) < 0:
        return None
    change = np.flatnonzero(np.diff(process.tcp_rx_bytes) > 0)
    if len(change) < counters.DIFFERENCE:  # connections are sampled every third second: from one look to the next
        return 0.0
    first, last = int(change[0]) + 1, int(change[-1]) + 1
    mine = float(process.tcp_rx_bytes[last] - process.tcp_rx_bytes[first])
    at = process.at_ns[[first, last]].astype(float)
    whole = float(np.diff(np.interp(at, wire.at_ns.astype(float), wire.rx_bytes.astype(float)))[0])
    return mine / whole if whole > 0 else 0.0


def _unread_ratio(resources: Resources, busy: float) -> float | None:
    queued = resources.process.tcp_queued_bytes
    queued = queued[queued >= 0]
    if len(queued) < counters.DIFFERENCE:
        return None
    return float((queued > max(MIN_UNREAD, UNREAD_S * busy)).mean())


def delivering(looks: LookIntervals) -> F64:
    """1 for each interval in which the link delivers, 0 for gaps. float64[interval]."""
    busy = float(np.percentile(looks.net_in, 95))
    result: F64 = (looks.net_in >= max(ON_RATIO * busy, 1.0)).astype(float)
    return result


def _on_ratio(looks: LookIntervals | None) -> float | None:
    if looks is None or looks.wait_ratio is None:
        return None
    waiting = looks.seconds * looks.wait_ratio
    whole = float(waiting.sum())
    return float((waiting * delivering(looks)).sum()) / whole if whole > 0 else None


def _rhythm(resources: Resources) -> Rhythm | None:
    """From the seconds if they show it, else from the close looks: cycles may be longer or shorter than either."""
    found = [r for looks in (resources.looks, resources.bursts) if looks and (r := _rhythm_of(looks)) is not None]
    return max(found, key=lambda r: r.overlap_ratio, default=None)


def _rhythm_of(looks: LookIntervals) -> Rhythm | None:
    if looks.wait_ratio is None:
        return None
    on = delivering(looks)
    waiting = looks.seconds * looks.wait_ratio
    working = looks.seconds - waiting
    whole = float(looks.seconds.sum())
    if waiting.sum() <= 0 or working.sum() <= 0:
        return None
    return Rhythm(
        on_waiting_ratio=float((waiting * on).sum() / waiting.sum()),
        on_working_ratio=float((working * on).sum() / working.sum()),
        gap_ratio=float((looks.seconds * (1 - on)).sum()) / whole,
        overlap_ratio=float(min((waiting * on).sum(), (working * (1 - on)).sum())) / whole,
        interval_s=float(np.median(looks.seconds)),
    )
