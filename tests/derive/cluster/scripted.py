"""Scripted jobs: a test chooses what members do alone, the transfer and the clocks, and so for whom others wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepscope.derive.cluster.member_calls import NONE, MemberCalls

F64 = npt.NDArray[np.float64]
MS = 1e6


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A synchronous job. ``own`` float64[step, member]: ns before each member enters the collective."""

    own: F64
    transfer: F64
    """float64[step]"""
    late: Sequence[float] = ()
    """By how much each member leaves a collective after the first, ns: the distance of its link."""

    def members(self, offsets: Sequence[float] = (), drift: Sequence[float] = ()) -> list[MemberCalls]:
        """Calls by each member's own clock, which is off by its offset and drifts (a ratio)."""
        steps, count = self.own.shape
        late = np.array(self.late or [0.0] * count)
        entries, exits = np.empty((steps, count)), np.empty((steps, count))
        before = np.zeros(count)
        for n in range(steps):
            entries[n] = before + self.own[n]
            before = entries[n].max() + self.transfer[n] + late
            exits[n] = before
        off = np.array(offsets or [0.0] * count)
        rate = 1 + np.array(drift or [0.0] * count)
        return [
            calls(
                (entries[:, j] * rate[j] + off[j]).astype(np.int64), (exits[:, j] * rate[j] + off[j]).astype(np.int64)
            )
            for j in range(count)
        ]


def calls(entries: npt.NDArray[np.int64], exits: npt.NDArray[np.int64]) -> MemberCalls:
    """Calls of which all but the first can be used."""
    usable = np.ones(len(entries), bool)
    usable[0] = False
    return MemberCalls(name="train_step", entries=entries, exits=exits, usable=usable & (entries != NONE))


def without(member: MemberCalls, first: int, dropped: Sequence[int] = ()) -> MemberCalls:
    """A member whose first steps were not recorded, nor some later ones."""
    kept = np.setdiff1d(np.arange(first, len(member.entries)), dropped)
    return MemberCalls(
        name=member.name, entries=member.entries[kept], exits=member.exits[kept], usable=member.usable[kept]
    )


def noisy(steps: int, members: int, usual: float = 1 * MS, noise: float = 0.2 * MS, seed: int = 1) -> F64:
    """Own times of equal members."""
    result: F64 = usual + np.abs(np.random.default_rng(seed).normal(0, noise, (steps, members)))
    return result
