"""Runs that were never made: times with noise, and what they log."""

from __future__ import annotations

import random
from collections.abc import Callable

from stepscope.use_cases.fix import said
from stepscope.use_cases.fix.proof import Timed

LOSS = said.of("epoch 1 loss: 0.6931\nepoch 2 loss: 0.5012\n")


def runs(
    ns: float, *, noise: float = 0.0, seed: int = 0, logged: said.Said = LOSS, steps: str = "fit", whole: float = 1.0
) -> Callable[[], Timed]:
    """Makes runs of about this time a step; ``whole``: factor of their whole time."""
    chance = random.Random(seed)

    def made() -> Timed:
        step = ns * chance.lognormvariate(0.0, noise)
        return Timed(ns={"step": step, "run": 100.0 * step * whole}, steps=steps, count=100, said=logged)

    return made
