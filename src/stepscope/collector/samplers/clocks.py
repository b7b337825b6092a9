"""Rows of the exchanges that ``clocks`` makes with other hosts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.clocks import clock_domain, settings
from stepscope.clocks.prober import Prober
from stepscope.collector.other_hosts.desk import Desk
from stepscope.collector.samplers.base import Rows
from stepscope.model.session import clock_domain as domains
from stepscope.tables.network_tables import ClockProbeTable

if TYPE_CHECKING:
    from stepscope.collector.other_hosts.desk import TaskDesk
    from stepscope.collector.samplers.names import NameNumbers


AGAIN_S = 5.0
"""Time after which an address that another collector of this host has is asked for again."""


class ClockSampler:
    """Takes what a prober found; without settings in the run directory it does nothing."""

    def __init__(self, origin_ns: int, names: NameNumbers) -> None:
        """Times in rows count from ``origin_ns``; hosts are named in ``names``."""
        self.rows = Rows(ClockProbeTable)
        self._origin_ns = origin_ns
        self._names = names
        self._prober: Prober | None = None
        self._desk: Desk | None = None
        self._key = b""
        self._domain = ""
        self._problem = ""
        self.dropped = ""
        """What came from other hosts and was not taken, once closed."""
        self._next = 0.0

    def start(self, run: Path) -> None:
        """Begin, if the run asks for it; nothing that fails here keeps anything else from being recorded."""
        asked = settings.read(run)
        if asked is None:
            return
        own = domains.key(clock_domain.boot_id(), clock_domain.time_namespace())
        if not own:
            self._problem = "clocks were not compared: this kernel does not say which boot it is"
            return
        try:
            self._key, self._domain = settings.key_of(Path(asked.key_file)), own
            prober = Prober(list(asked.hosts), self._key, own)
            prober.start()
        except (OSError, ValueError, RuntimeError) as error:
            self._problem = f"clocks were not compared: {error}"
            return
        self._prober = prober

    def lead(self, host: TaskDesk, reach: bytes) -> None:
        """Take requests of other hosts for captures of this host's tasks, if clocks are compared with these."""
        if self._prober is not None:
            self._desk = Desk(self._key, bytes.fromhex(self._domain), reach, host)
            self._prober.others = self._desk.answer

    def sample(self) -> None:
        """Take the exchanges since the last look; take over from a collector of this host that has ended."""
        if self._prober is None:
            return
        if not self._prober.begun and time.monotonic() >= self._next:
            self._next = time.monotonic() + AGAIN_S
            self._prober.start()
        for one in self._prober.take():
            self.rows.add(
                one.sent_ns - self._origin_ns,
                self._names.number(one.peer),
                one.burst,
                one.received_ns,
                one.answered_ns,
                one.returned_ns - self._origin_ns,
                one.real_ns,
                one.peer_real_ns,
            )

    def close(self) -> str:
        """Make a last burst; return why clocks were not compared, empty if they were or were not to be."""
        if self._prober is not None:
            self._prober.close()
            self.sample()
            self._problem = f"clocks were not compared: {self._prober.problem}" if self._prober.problem else ""
            self.dropped = _dropped(self._prober, self._desk)
            self._prober = None
        if self._desk is not None:
            self._desk.close()
            self._desk = None
        return self._problem


def _dropped(prober: Prober, desk: Desk | None) -> str:
    """What came from other hosts and was not taken, in words; "" if all was."""
    wrong, stale = prober.dropped + (desk.wrong if desk is not None else 0), desk.stale if desk is not None else 0
    counts = [(wrong, "had not the key, or made no sense"), (stale, "were repeated or too old")]
    said = [f"{count} {what}" for count, what in counts if count]
    problem = f"; leading a request failed: {desk.problem}" if desk is not None and desk.problem else ""
    return (
        f"datagrams of other hosts that were dropped: {', '.join(said) or 'none'}{problem}" if said or problem else ""
    )
