"""The report's clocks of other hosts, where they were compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.clocks import session_links
from stepscope.model.report.machine.clocks import HostClockOffset

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

_ENOUGH = 2
"""Bursts from which a drift follows."""


def build(view: SessionView) -> tuple[HostClockOffset, ...]:
    """One for each host that this session exchanged stamps with."""
    session = view.session
    places = session_links.peers(session)
    model = session_links.model_of([session]) if places else None
    if model is None:
        return ()
    found = []
    for domain, quads in session_links.quads_of(session).items():
        clock = model.clocks.get(domain)
        if clock is None or not len(quads):
            continue
        first, last = float(quads.sent_ns[0]), float(quads.returned_ns[-1])
        at = np.array([first, (first + last) / 2, last])
        offsets, bound = clock.offset(at), float(clock.bound(at[1:2])[0])
        if not (np.isfinite(offsets).all() and np.isfinite(bound)):  # a clock jumped in between
            continue
        trips = quads.returned_ns - quads.sent_ns - (quads.answered_ns - quads.received_ns)
        steady = len(np.unique(quads.burst)) >= _ENOUGH
        found.append(
            HostClockOffset(
                host=places[domain],
                domain=domain,
                offset_ns=round(float(offsets[1])),
                wall_offset_ns=round(float(offsets[1])) + session_links.wall_ahead(session, domain),
                bound_ns=round(bound),
                drift_ratio=float(offsets[2] - offsets[0]) / (last - first) if steady and last > first else 0.0,
                round_trip_ns=int(trips.min()),
                exchanges=len(quads),
            )
        )
    return tuple(found)
