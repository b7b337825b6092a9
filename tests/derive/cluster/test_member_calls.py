"""The calls of a member's steps, and what it did alone between them."""

from __future__ import annotations

import numpy as np
from tests.derive.sessions import MS, Job

from stepscope.derive.cluster import member_calls
from stepscope.wire.kinds import Kind

PERIOD = 5 * MS
WINDOW = 100
"""Steps observed before and after a rest of the wrappers."""
REST = 200 * PERIOD


def test_a_rest_of_the_wrappers_is_not_what_a_member_did_alone() -> None:
    """The time before the first call after a rest holds steps that were only counted."""
    job = Job()
    call = job.function()
    again = WINDOW * PERIOD + REST
    for start in (0, again):
        call.every(PERIOD, WINDOW, dur=4 * MS, start=start, arg=1)
    job.gap((WINDOW - 1) * PERIOD + 4 * MS + 1, again - (WINDOW - 1) * PERIOD - 4 * MS - 2, 200, Kind.FUNCTION)
    (calls,) = member_calls.of(job.steps(), 0)
    assert np.nanmax(np.where(calls.usable, calls.own_ns, np.nan)) == PERIOD - 4 * MS
    assert not calls.usable[[WINDOW - 1, WINDOW]].any()
    assert calls.usable[WINDOW + 1 : -1].all()


def test_spans_are_the_calls_of_a_framework_whose_calls_are_not_recorded() -> None:
    """Marked steps of JAX hold the user's spans alone; where calls of a framework are recorded, spans do not count."""
    job = Job()
    job.step().every(PERIOD, WINDOW, dur=PERIOD)
    job.call(Kind.SPAN, "train step").every(PERIOD, WINDOW, dur=2 * MS, start=2 * MS)
    (calls,) = member_calls.of(job.steps(), 0)
    assert calls.name == "span train step"
    assert set(calls.own_ns[calls.usable][1:].tolist()) == {PERIOD - 2 * MS}
    job.function().every(PERIOD, WINDOW, dur=MS, start=2 * MS, arg=1)
    assert [one.name.partition(" ")[0] for one in member_calls.of(job.steps(), 0)] == ["function"]
