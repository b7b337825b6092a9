"""Seconds with and without uploads: how much input arrives in them, and how long the steps wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.system import resources

if TYPE_CHECKING:
    from stepscope.causes.system.resources import LookIntervals
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64, Bool

ACKNOWLEDGED = 0.05
"""Acknowledgements per byte received: 66 bytes for every second full segment, and more on small windows."""
MIN_OUT = 200_000.0
"""Bytes per second that make an upload."""
OF_MOST = 0.3
"""Share of the busiest second's uploads: less is only the beginning or end of an upload."""
MIN_SECONDS = 3
"""Of each kind: with and without uploads."""
MAX_INPUT = 0.8
"""Largest share of the usual input that arrives during uploads."""
MIN_WAIT_MORE = 0.15
"""Least increase of the waiting share during uploads."""


class Uploads(Struct, frozen=True, kw_only=True):
    """Both kinds of seconds. Rates in bytes a second."""

    share_ratio: float
    """Share of the time with uploads."""
    sent: float
    """Rate during uploads."""
    input_beside: float
    input_usual: float
    wait_beside: float | None
    """Share of the time that steps wait; None if unknown."""
    wait_usual: float | None

    @property
    def squeezes(self) -> bool:
        """Whether less input arrives during uploads, and steps wait for it."""
        if self.input_usual < MIN_OUT or self.input_beside > MAX_INPUT * self.input_usual:
            return False
        return self.wait_beside is not None and self.wait_more >= MIN_WAIT_MORE

    @property
    def wait_more(self) -> float:
        """Increase of the waiting share during uploads."""
        return (self.wait_beside or 0.0) - (self.wait_usual or 0.0)

    @property
    def lost_ratio(self) -> float:
        """Share of the time that steps wait because of uploads."""
        return self.share_ratio * self.wait_more if self.squeezes else 0.0


def build(view: StepsView) -> Uploads | None:
    """None if nothing is uploaded, or always."""
    used = view.get(resources.build)
    if used is None or used.wire is None:
        return None
    looks = used.looks
    up = _uploading(looks)
    if min(int(up.sum()), int((~up).sum())) < MIN_SECONDS:
        return None

    def mean(values: F64, mask: Bool) -> float:
        return float(np.average(values[mask], weights=looks.seconds[mask]))

    wait = looks.wait_ratio
    return Uploads(
        share_ratio=float(looks.seconds[up].sum() / looks.seconds.sum()),
        sent=mean(looks.net_out, up),
        input_beside=mean(looks.net_in, up),
        input_usual=mean(looks.net_in, ~up),
        wait_beside=None if wait is None else mean(wait, up),
        wait_usual=None if wait is None else mean(wait, ~up),
    )


def _uploading(looks: LookIntervals) -> Bool:
    """Seconds in which much is sent, not counting acknowledgements."""
    sent = np.maximum(0.0, looks.net_out - ACKNOWLEDGED * looks.net_in)
    result: Bool = sent >= max(MIN_OUT, OF_MOST * float(sent.max(initial=0.0)))
    return result
