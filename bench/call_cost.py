"""What does a wrapped call cost in a training step? Source of ``wire.call_cost``.

*In turn*: a Keras fit on one core with all wrappers in every other block of twenty steps; the difference between
neighbouring blocks divided by the calls of a step. *Apart*: the same for reads of one value with more or less other
work between them, by CPU time. *Cold*: stand-ins of a function, each called after a pass over 16 MB of other data, less
the plain call; medians of alternating rounds.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from _stats import bootstrap
from stepscope.wire.call_cost import COOLING_NS, LIGHT_NS, MISSES_NS, executed_ns, wrapped_ns

PROGRAMS = Path(__file__).resolve().parent / "programs"
BETWEEN = ("--ops=0", "--bytes=1000000", "--bytes=4000000", "--ops=1", "--ops=3", "--ops=6", "--ops=20")
"""Other work between two reads."""
OTHER_BYTES = 16_000_000


def said_by(program: str, *arguments: str) -> bytes:
    """Last line of a program that runs under stepscope on one core."""
    with tempfile.TemporaryDirectory() as scratch:
        run = [sys.executable, "-m", "stepscope", "run", "--quiet", "--", sys.executable, str(PROGRAMS / program)]
        core = str(max(os.sched_getaffinity(0)))
        done = subprocess.run(
            ["taskset", "-c", core, *run, *arguments],
            cwd=scratch,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.PIPE,
            check=True,
        )
    return done.stdout.splitlines()[-1]


def in_turn(pairs: int) -> str:
    """The measured cost of a call in a fit, and that of ``wire.call_cost``."""
    said = json.loads(said_by("in_turn.py", f"--pairs={pairs}"))
    more = bootstrap(said["more_us"])
    # in the other blocks each step is counted, which costs something too
    value, low, high = ((us + LIGHT_NS[1] / 1e3) / said["calls"] for us in (more.value, more.low, more.high))
    least, usual, most = (ns / 1e3 for ns in wrapped_ns(said["loop_ns"]))
    return (
        f"in turn: {value:.1f} us a call ({low:.1f} to {high:.1f}, {len(said['more_us'])} pairs of blocks, "
        f"{said['calls']:.1f} calls a step), in a loop {said['loop_ns'] / 1e3:.2f}; "
        f"accounted {usual:.1f} ({least:.1f} to {most:.1f})"
    )


def apart(between: str) -> str:
    """The measured cost of a call with some other work between two."""
    said = json.loads(said_by("reads_in_turn.py", between))
    low, middle, high = said["more_us"]
    cooled = [1 / (1 + ns / 1e3 / said["apart_us"]) for ns in COOLING_NS]
    least, usual, most = (
        (executed_ns(1e3 * said["loop_us"]) + share * misses) / 1e3
        for share, misses in zip(cooled, MISSES_NS, strict=True)
    )
    return (
        f"{said['apart_us']:.1f} us apart ({between[2:]}): {middle:.1f} us a call (quartiles {low:.1f} to {high:.1f}), "
        f"in a loop {said['loop_us']:.2f}; accounted {usual:.1f} ({least:.1f} to {most:.1f})"
    )


def plain(value: int) -> int:
    """The wrapped function."""
    return value


def stand_ins() -> dict[str, Callable[[int], int]]:
    """Stand-ins by how they count."""
    header = memoryview(mmap.mmap(-1, 4096)).cast("Q")
    count = itertools.count().__next__

    def stores(value: int, *args: int, **kwargs: int) -> int:
        header[1] = count()
        return plain(value, *args, **kwargs)

    def fixed(value: int) -> int:
        header[1] = count()
        return plain(value)

    return {
        "lru_cache(maxsize=0), in C": functools.lru_cache(maxsize=0)(plain),
        "Python, any arguments, count in the ring's header": stores,
        "Python, fixed arguments, count in the ring's header": fixed,
    }


def cold_ns(function: Callable[[int], int], calls: int) -> float:
    """Median duration of a call in cold caches."""
    other = np.zeros(OTHER_BYTES // 8)
    took = []
    for _ in range(calls):
        other += 1
        began = time.perf_counter_ns()
        function(1)
        took.append(time.perf_counter_ns() - began)
    return median(took)


def main() -> None:
    """Print what each costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of the program")
    parser.add_argument("--pairs", type=int, default=400, help="of blocks, in a run")
    parser.add_argument("--rounds", type=int, default=6, help="of calls in cold caches")
    parser.add_argument("--calls", type=int, default=300, help="of each, in a round")
    options = parser.parse_args()
    for _ in range(options.runs):
        print(in_turn(options.pairs), flush=True)
    for between in BETWEEN:
        print(apart(between), flush=True)
    functions = {"": plain, **stand_ins()}
    rounds = [{name: cold_ns(f, options.calls) for name, f in functions.items()} for _ in range(options.rounds)]
    for name in list(functions)[1:]:
        more = [took[name] - took[""] for took in rounds]
        print(f"cold: {name:52} +{median(more) / 1e3:.1f} us ({min(more) / 1e3:.1f} to {max(more) / 1e3:.1f})")


if __name__ == "__main__":
    main()
