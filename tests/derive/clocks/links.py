"""Simulated links between clocks: what probes over them would have recorded, and the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from stepscope.derive.clocks.gates import FourStamps, of_probes
from stepscope.derive.clocks.solve import Link
from stepscope.tables.records import F64

S = 1e9
MS = 1e6
US = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A host's clock: offset at the true time 0 in nanoseconds, drift, and how far the drift wanders (a slow sine)."""

    offset_ns: float = 0.0
    drift: float = 0.0
    wander: float = 0.0
    period_ns: float = 1200 * S

    def at(self, true_ns: F64) -> F64:
        """What it shows at true times."""
        turn = 2 * np.pi / self.period_ns
        return true_ns + self.offset_ns + self.drift * true_ns + self.wander / turn * (1 - np.cos(turn * true_ns))


class Path(Struct, frozen=True, kw_only=True):
    """A path between two hosts: delays one way in nanoseconds, mean exponential jitter, share of lost exchanges."""

    there_ns: float = 0.05 * MS
    back_ns: float = 0.05 * MS
    jitter_ns: float = 0.0
    loss: float = 0.0
    busy: float = 0.1
    """Share of exchanges that a busy CPU holds up by some milliseconds."""


def probed(
    a: Clock, b: Clock, path: Path, *, seconds: float, every: float = 30.0, probes: int = 32, seed: int = 1
) -> FourStamps:
    """Bursts of exchanges from A to B, with a first one at one second."""
    rng = np.random.default_rng(seed)
    starts = np.arange(1.0, seconds, every) * S
    burst = np.repeat(np.arange(len(starts)), probes)
    sent = np.repeat(starts, probes) + np.tile(np.arange(probes) * 2 * MS, len(starts))
    count = len(sent)

    def delay(base: float) -> F64:
        held = (rng.random(count) < path.busy) * rng.exponential(5 * MS, count)
        return base + rng.exponential(path.jitter_ns or 1.0, count) + held

    received = sent + delay(path.there_ns)
    answered = received + rng.uniform(10, 60, count) * US
    returned = answered + delay(path.back_ns)
    kept = rng.random(count) >= path.loss
    return FourStamps(
        burst=burst[kept],
        sent_ns=np.rint(a.at(sent[kept])).astype(np.int64),
        received_ns=np.rint(b.at(received[kept])).astype(np.int64),
        answered_ns=np.rint(b.at(answered[kept])).astype(np.int64),
        returned_ns=np.rint(a.at(returned[kept])).astype(np.int64),
    )


def link(name_a: str, a: Clock, name_b: str, b: Clock, path: Path, *, seconds: float, seed: int = 1) -> Link:
    """A link with the gates of its probes."""
    return Link(a=name_a, b=name_b, gates=of_probes(probed(a, b, path, seconds=seconds, seed=seed)))


def truth(reference: Clock, other: Clock, seconds: float, count: int = 499) -> tuple[F64, F64]:
    """Times of the reference, and the true offset of the other clock then."""
    true = np.linspace(0.0, seconds * S, count)
    at = reference.at(true)
    return at, other.at(true) - at
