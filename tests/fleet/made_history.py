"""Sessions of one job over time, with changes that are planted: parts that tests and benchmarks write.

Each has steps of 87 ms in some functions, 3 % of noise that all of them share (the host), 1 % of noise in each, samples
at 40 Hz of CPU time, another number of steps in each session, and a start of 4 s that each run has once.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from tests.fleet.made_parts import put

from stepscope.fleet import schema
from stepscope.fleet.rows import Row

HZ = 40
START_S = 4.0
FIRST_S = 1_780_000_000
EVERY_S = 6 * 3600
COSTS_MS = {
    "forward": 40.0,
    "backward": 23.0,
    "load": 10.0,
    "augment": 4.35,
    "log": 0.435,
    "encode": 3.0,
    "decode": 1.0,
    "resize": 4.0,
    "shuffle": 0.2,
}
"""CPU time of a step in each function: 86 ms in all, ``augment`` 5 %, ``log`` 0.5 %."""


class Planted:
    """What changes, in sessions ``begin <= i < end`` of all: factors of functions, and ms that move."""

    def __init__(self, begin: int, end: int | None = None, **factors: float) -> None:
        """``factors``: of functions' costs."""
        self.begin, self.end, self.factors = begin, end, factors

    def of(self, number: int, costs: dict[str, float]) -> dict[str, float]:
        """The costs of a session's step."""
        if number < self.begin or (self.end is not None and number >= self.end):
            return costs
        return {name: cost * self.factors.get(name, 1.0) for name, cost in costs.items()}


def write(
    folder: Path,
    seed: int,
    *planted: Planted,
    sessions: int = 100,
    slow_host: float = 1.0,
    slow_cpu: bool = False,
    steps: tuple[int, int] = (20_000, 40_000),
    more_steps_from: int | None = None,
    version: int = schema.VERSION,
    program: str = "train.py",
) -> None:
    """Write the parts.

    ``slow_host``: factor of a step's wall time on host 0, one of four; ``slow_cpu``: of its CPU time, too.
    """
    draw = np.random.default_rng(seed)
    for number in range(sessions):
        host = int(draw.integers(4))
        costs = COSTS_MS
        for one in planted:
            costs = one.of(number, costs)
        count = int(draw.integers(*steps)) * (2 if more_steps_from is not None and number >= more_steps_from else 1)
        shared = draw.normal(1.0, 0.03) * (slow_host if slow_cpu and host == 0 else 1.0)
        true = {name: cost * shared * draw.normal(1.0, 0.01) for name, cost in costs.items()}
        seen_s = {name: float(draw.poisson(cost * 1e-3 * count * HZ)) / HZ for name, cost in true.items()}
        start_s = START_S * draw.normal(1.0, 0.02)
        wall = draw.normal(1.0, 0.02) * (slow_host if not slow_cpu and host == 0 else 1.0)
        rows = _rows(number, f"host{host}", program, count, wall * sum(true.values()), seen_s, start_s)
        if version == 1:
            rows = [row for row in rows if row.name != "sampled_cpu_ns"]
        put(folder, f"{program.partition('.')[0]}{number:03d}", rows, day=day_of(number), version=version)


def day_of(number: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(FIRST_S + number * EVERY_S))


def _rows(
    number: int, host: str, program: str, count: int, step_ms: float, seen_s: dict[str, float], start_s: float
) -> list[Row]:
    words = {
        "user": "ann",
        "project": "nets",
        "program": program,
        "host": host,
        "end": "code",
        "started": day_of(number),
    }
    whole = sum(seen_s.values())
    amounts = {
        "started_unix_s": FIRST_S + number * EVERY_S,
        "wall_ns": _ns(start_s + step_ms * 1e-3 * count),
        "cpu_ns": _ns(start_s + whole),
        "sampled_cpu_ns": _ns(start_s + whole),
        "steps": count,
        "step_ns": _ns(step_ms * 1e-3),
        "exit_code": 0,
    }
    lines = [(20 + 10 * at, name, seconds, seconds) for at, (name, seconds) in enumerate(seen_s.items())]
    lines += [(300, "main", whole, 0.0), (5, "setup", start_s, start_s)]
    return [
        *(Row(kind="about", name=name, text=text) for name, text in words.items()),
        *(Row(kind="amount", name=name, number=value) for name, value in amounts.items()),
        *(
            Row(
                kind="line",
                name="",
                detail="own",
                file="train.py",
                line=line,
                function=function,
                time_ns=_ns(seconds),
                self_ns=_ns(own),
                cpu_ns=_ns(seconds),
                number=round(seconds * HZ),
            )
            for line, function, seconds, own in lines
        ),
    ]


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
