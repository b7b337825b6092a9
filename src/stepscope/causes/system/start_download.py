"""What arrives over the network before the first steady step, and in how much of that time.

The bytes are those of the host's interfaces, if the steps' process received any itself, or started other programs,
which may download for it: its own connections are seen every third second, and short ones not at all.

Serves slow_initialisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.machine import counters
from stepscope.model.log.events import ChildStarted

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView

MIN_BYTES = 50_000_000
"""Less is no download that a run waits for: half a second on a slow link."""
MIN_RATE = 1_000_000
"""Bytes a second from which an interval counts as receiving."""


class StartDownload(Struct, frozen=True, kw_only=True):
    """A download before the first steady step."""

    bytes: int
    receiving_ns: int
    """Time of the samples' intervals in which it arrives."""

    @property
    def bytes_s(self) -> float:
        """Mean rate while it arrives."""
        return 1e9 * self.bytes / max(1, self.receiving_ns)


def build(view: StepsView) -> StartDownload | None:
    """None if hardly anything arrived, or nothing says so."""
    first = int(view.steps.windows[0][0])
    wire, table = counters.wire(view.session), view.session.process
    own = table.tcp_rx_bytes[table.pid == view.steps.worker.info.pid]
    if wire is None or not ((own > 0).any() or view.worker.all(ChildStarted)):
        return None
    inside = wire.at_ns[1:] <= first
    grown, lasted = counters.growth(wire.rx_bytes)[inside], np.diff(wire.at_ns)[inside]
    receives = 1e9 * grown / np.maximum(lasted, 1) >= MIN_RATE
    size = int(grown[receives].sum())
    return StartDownload(bytes=size, receiving_ns=int(lasted[receives].sum())) if size >= MIN_BYTES else None
