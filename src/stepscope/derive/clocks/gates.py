"""Gates: moments at which the offset between two clocks is known to lie between two bounds.

An exchange of four stamps (sent by A, received and answered by B, returned to A) gives one. What B receives was sent
before, so ``received - sent`` is the offset plus the delay there, and the offset is not larger; ``answered - returned``
is the offset minus the delay back, and the offset is not smaller. No assumption about the delays is made. A collective
gives one as well: no worker leaves it before each has entered it.

The offset is the clock of B minus that of A. Source of the bounds: Duda, Harrus, Haddad, Bernard, *Estimating global
time in distributed systems*, ICDCS 1987.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.tables.records import F64, I64, Bool, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

RATE_MAX = 2e-4
"""Largest rate of one clock against another. Source: quartz is made to 100 ppm (HUYGENS, NSDI 2018: up to 30 ppm
measured); two may differ in opposite directions."""


class FourStamps(Table, frozen=True, kw_only=True):
    """Exchanges over one link, in time order. Nanoseconds, int64[exchange]."""

    burst: I64
    """Number of the burst; exchanges of a burst follow each other within a fraction of a second."""
    sent_ns: I64
    """Clock of A, like ``returned_ns``."""
    received_ns: I64
    """Clock of B, like ``answered_ns``."""
    answered_ns: I64
    returned_ns: I64


class Gates(Struct, frozen=True, kw_only=True):
    """Bounds of the offset between two clocks, sorted by time. float64[gate], but for ``probes``."""

    at_ns: F64
    """Clock of A."""
    low_ns: F64
    high_ns: F64
    probes: Bool
    """Whether it comes from an exchange, whose middle is an estimate of the offset; a collective only bounds it."""

    def __len__(self) -> int:
        """The number of gates."""
        return len(self.at_ns)

    def take(self, index: Bool | I64) -> Gates:
        """The gates that ``index`` selects."""
        return Gates(
            at_ns=self.at_ns[index], low_ns=self.low_ns[index], high_ns=self.high_ns[index], probes=self.probes[index]
        )

    def moved(self, at_ns: F64) -> Gates:
        """The same bounds at other times."""
        return Gates(at_ns=at_ns, low_ns=self.low_ns, high_ns=self.high_ns, probes=self.probes)


def joined(parts: Iterable[Gates]) -> Gates:
    """All gates of one link, by time."""
    found = list(parts)
    at = np.concatenate([np.empty(0), *(part.at_ns for part in found)])
    order = np.argsort(at, kind="stable")
    return Gates(
        at_ns=at[order],
        low_ns=np.concatenate([np.empty(0), *(part.low_ns for part in found)])[order],
        high_ns=np.concatenate([np.empty(0), *(part.high_ns for part in found)])[order],
        probes=np.concatenate([np.empty(0, np.bool_), *(part.probes for part in found)])[order],
    )


_GATHER_NS = 5_000_000_000


def of_probes(quads: FourStamps) -> Gates:
    """One gate for each burst: the best bound from below and the best from above, which may be of two exchanges.

    Bounds of exchanges are widened by the drift that is possible until the middle of the burst. An exchange whose
    stamps contradict each other (answered before received, returned before sent) is left out.
    """
    good = (quads.returned_ns >= quads.sent_ns) & (quads.answered_ns >= quads.received_ns)
    good &= quads.returned_ns - quads.sent_ns >= quads.answered_ns - quads.received_ns
    quads = quads.take(good)
    if not len(quads):
        return joined(())
    order = np.lexsort((quads.sent_ns, quads.burst))
    quads = quads.take(order)
    first = np.flatnonzero(np.diff(quads.burst, prepend=quads.burst[0] - 1))
    of = np.cumsum(np.diff(quads.burst, prepend=quads.burst[0]) != 0)
    sent, back = quads.sent_ns.astype(float), quads.returned_ns.astype(float)
    high = (quads.received_ns - quads.sent_ns).astype(float)
    low = (quads.answered_ns - quads.returned_ns).astype(float)
    counts = np.diff(np.append(first, len(of)))
    middle = (np.add.reduceat(sent, first) + np.add.reduceat(back, first)) / (2 * counts)
    high += RATE_MAX * np.abs(sent - middle[of])
    low -= RATE_MAX * np.abs(back - middle[of])
    made = Gates(
        at_ns=middle,
        low_ns=np.maximum.reduceat(low, first),
        high_ns=np.minimum.reduceat(high, first),
        probes=np.ones(len(first), np.bool_),
    )
    return joined([made.take(made.low_ns <= made.high_ns)])


def of_collectives(entries_a: I64, exits_a: I64, entries_b: I64, exits_b: I64) -> Gates:
    """One gate for each collective that both workers took part in: none leaves before the other has entered.

    Args:
        entries_a: when A entered each collective, by the clock of A. int64[collective], nanoseconds.
        exits_a: when A left it.
        entries_b: when B entered the same collective, by the clock of B.
        exits_b: when B left it.
    """
    made = Gates(
        at_ns=(entries_a + exits_a) / 2,
        low_ns=(entries_b - exits_a).astype(float),
        high_ns=(exits_b - entries_a).astype(float),
        probes=np.zeros(len(entries_a), np.bool_),
    )
    return joined([made])


def gathered(gates: Gates) -> Gates:
    """Gates of collectives, one for each ``_GATHER_NS``, with the best bounds of each side.

    Gates that exclude each other within that time are left out together.
    """
    if not len(gates):
        return gates
    bucket = ((gates.at_ns - gates.at_ns[0]) // _GATHER_NS).astype(np.int64)
    first = np.flatnonzero(np.diff(bucket, prepend=-1))
    middle = np.add.reduceat(gates.at_ns, first) / np.diff(np.append(first, len(bucket)))
    of = np.cumsum(np.diff(bucket, prepend=bucket[0]) != 0)
    drift = RATE_MAX * np.abs(gates.at_ns - middle[of])
    made = Gates(
        at_ns=middle,
        low_ns=np.maximum.reduceat(gates.low_ns - drift, first),
        high_ns=np.minimum.reduceat(gates.high_ns + drift, first),
        probes=np.zeros(len(first), np.bool_),
    )
    return made.take(made.low_ns <= made.high_ns)


def jumps(at_ns: I64, real_ns: I64) -> I64:
    """Times at which CLOCK_REALTIME moved against CLOCK_MONOTONIC: a step of the clock, or a suspended host.

    Args:
        at_ns: when both were read, by the monotonic clock; int64[reading], in order.
        real_ns: realtime minus monotonic, likewise.

    Returns:
        The middle between the readings before and after each jump; int64[jump].
    """
    moved = np.flatnonzero(np.abs(np.diff(real_ns)) > JUMP_NS)
    result: I64 = (at_ns[moved] + at_ns[moved + 1]) // 2
    return result


JUMP_NS = 1_000_000
"""A smaller change is the time between two readings of clocks."""
