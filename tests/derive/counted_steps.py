"""A job most of whose steps are only counted."""

from __future__ import annotations

from tests.derive.sessions import MS, Job

from stepscope.wire.kinds import Kind

PERIOD = 2 * MS
WINDOW = 100
"""Steps observed before and after the gap."""
COUNTED = 1000
"""Steps in it."""
AGAIN = (WINDOW + COUNTED) * PERIOD


def with_gap(kind: Kind = Kind.EXECUTION) -> Job:
    """Steps of 2 ms, most of them in a gap that was told in two parts."""
    job = Job()
    call = job.execution() if kind == Kind.EXECUTION else job.function()
    if kind == Kind.EXECUTION:
        job.loop().at(0, (2 * WINDOW + COUNTED) * PERIOD)
    for start in (0, AGAIN):
        call.every(PERIOD, WINDOW, dur=MS, start=start, arg=1)
    half = COUNTED // 2 * PERIOD
    job.gap((WINDOW - 1) * PERIOD + MS + 1, half, COUNTED // 2, kind)
    job.gap((WINDOW - 1) * PERIOD + MS + 1 + half, AGAIN - (WINDOW - 1) * PERIOD - MS - 2 - half, COUNTED // 2, kind)
    return job
