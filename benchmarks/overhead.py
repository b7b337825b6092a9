"""What does measuring cost, and does the session's own account say so?

Interleaved runs with and without stepscope, in pairs of alternating order, at several step lengths. Beside the
wall-clock ratio with its bootstrap interval stands what the session itself accounts for (report.json, ``overhead``).
Also: how much later the job starts, how long after its end the report stands, and what one record costs over 10^6.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from _stats import Interval, bootstrap
from stepscope.wire.ring import RingWriter

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "benchmarks" / "programs" / "steps.py"
PAGE = ROOT / "docs" / "benchmarks" / "overhead.md"
STEPS = {"1": 400, "5": 120, "80": 8}
"""Steps per chunk for each step length in milliseconds; a run has 20 chunks."""
CHUNKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of the program. Times are CLOCK_MONOTONIC nanoseconds."""

    spawned: int
    exited: int
    said: Mapping[str, float]
    chunks: Sequence[float]
    """Seconds per step of each chunk."""
    report: Mapping[str, object] | None


def execute(python: str, arguments: Sequence[str], *, measured: bool) -> Ran:
    """Run the program, with stepscope or without."""
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory(prefix="stepscope-overhead-") as scratch:
        report = Path(scratch) / "report.json"
        run = [sys.executable, "-m", "stepscope", "run", "--quiet", "--report-json", str(report), "--"]
        command = [*(run if measured else []), python, str(PROGRAM), *arguments]
        spawned = time.monotonic_ns()
        done = subprocess.run(command, cwd=scratch, env=env, check=True, capture_output=True, text=True, timeout=900)
        exited = time.monotonic_ns()
        said = json.loads(done.stdout.strip().splitlines()[-1])
        data = json.loads(report.read_text()) if measured else None
    chunks = [seconds / said["steps"] for seconds in said["seconds"]]
    return Ran(spawned=spawned, exited=exited, said=said, chunks=chunks, report=data)


def interleaved(python: str, arguments: Sequence[str], pairs: int) -> tuple[list[Ran], list[Ran]]:
    """Pairs of runs without and with, the order alternating, after one of each that is thrown away."""
    plain: list[Ran] = []
    measured: list[Ran] = []
    for index in range(pairs):
        order = (False, True) if index % 2 == 0 else (True, False)
        for with_stepscope in order:
            (measured if with_stepscope else plain).append(execute(python, arguments, measured=with_stepscope))
    return plain, measured


def slowdown(plain: Sequence[Ran], measured: Sequence[Ran]) -> Interval:
    """Relative change of the step time.

    Each run's step time is the median of its chunks, which a busy neighbour of a second or two does not move; the
    pairs' ratios are averaged as logarithms and resampled.
    """
    ratios = [math.log(median(m.chunks) / median(p.chunks)) for p, m in zip(plain, measured, strict=True)]
    found = bootstrap(ratios, mean)
    return Interval(value=math.expm1(found.value), low=math.expm1(found.low), high=math.expm1(found.high))


def account(measured: Sequence[Ran]) -> tuple[float, float, float, float]:
    """Of the sessions' own accounts: median ratio, lowest low, highest high, median share of a core of the sidecar."""
    overheads = [run.report["overhead"] for run in measured if run.report is not None]
    read = [
        {k: float(v) for k, v in o.items() if isinstance(v, (int, float))} for o in overheads if isinstance(o, dict)
    ]
    return (
        median(o["ratio"] for o in read),
        min(o["low"] for o in read),
        max(o["high"] for o in read),
        median(o["sidecar_core_ratio"] for o in read),
    )


def record_cost(records: int = 1_000_000, chunk: int = 100_000) -> list[float]:
    """Nanoseconds per record, two readings of the clock included, for each chunk of records into one ring."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        write = RingWriter(str(Path(scratch) / "ring"), 200_000).write
        now = time.monotonic_ns
        costs = []
        for _ in range(records // chunk):
            began = now()
            for _ in range(chunk):
                start = now()
                write(start, now() - start, 0, 1, 6, 0, 1)
            costs.append((now() - began) / chunk)
    return costs


def step_lengths(python: str, kinds: Sequence[str], lengths: Sequence[str], pairs: int) -> list[str]:
    """One line of the table per kind of loop and step length."""
    lines = [
        "| loop | step | with/without, wall clock | width | account of level 0 | upper bound | sidecar, of a core |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        for length in lengths:
            arguments = ["--kind", kind, "--step-ms", length, "--steps", str(STEPS[length]), "--chunks", str(CHUNKS)]
            plain, measured = interleaved(python, arguments, pairs)
            wall = slowdown(plain, measured)
            ratio, _, high, sidecar = account(measured)
            step = median(median(run.chunks) for run in plain)
            lines.append(
                f"| {kind} | {1000 * step:.2f} ms | {wall.percent()} | ±{50 * (wall.high - wall.low):.2f} % "
                f"| {ratio:.3%} | {high:.3%} | {sidecar:.2%} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def start_delay(python: str, runs: int) -> str:
    """How much later the program's first line runs."""
    arguments = ["--step-ms", "0.1", "--steps", "5", "--chunks", "1"]
    plain, measured = interleaved(python, arguments, runs)
    first = [median((run.said["began"] - run.spawned) / 1e6 for run in group) for group in (plain, measured)]
    imported = [
        median((run.said["imported"] - run.said["began"]) / 1e6 for run in group) for group in (plain, measured)
    ]
    return (
        f"The job's first line runs {first[1] - first[0]:.0f} ms later ({first[1]:.0f} instead of {first[0]:.0f} ms); "
        f"importing TensorFlow takes {imported[1] - imported[0]:+.0f} ms ({imported[0]:.0f} ms without)."
    )


def report_delay(python: str) -> str:
    """How long after the end of a job of 10^5 steps the report stands."""
    arguments = ["--kind", "loop", "--step-ms", "0.1", "--steps", "10000", "--chunks", "9"]
    plain, measured = interleaved(python, arguments, 1)
    after = [(group[0].exited - group[0].said["ended"]) / 1e9 for group in (plain, measured)]
    return (
        f"After 10^5 steps the command has ended, report and all, {after[1]:.2f} s after the program's last line; "
        f"without stepscope the interpreter alone takes {after[0]:.2f} s to end."
    )


def main() -> int:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(description="what measuring costs")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of runs for each step length")
    parser.add_argument("--kinds", default="fit,loop", help="fit, loop")
    parser.add_argument("--lengths", default="1,5,80", help="milliseconds, of 1, 5 and 80")
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--only", choices=("steps", "start", "report", "record"), help="one part")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/overhead.md")
    options = parser.parse_args()
    parts: list[str] = []
    if options.only in {None, "record"}:
        costs = record_cost()
        parts.append(
            f"A record costs {median(costs):.0f} ns (first 10^5: {costs[0]:.0f}, last 10^5 of 10^6: {costs[-1]:.0f}), "
            "two readings of the clock included."
        )
    if options.only in {None, "start"}:
        parts.append(start_delay(options.python, 5))
    if options.only in {None, "report"}:
        parts.append(report_delay(options.python))
    if options.only in {None, "steps"}:
        lines = step_lengths(options.python, options.kinds.split(","), options.lengths.split(","), options.pairs)
        parts.append("\n".join(lines))
    page = "\n\n".join(parts) + "\n"
    print(page)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text("# What measuring costs\n\nPrinted by `make bench-overhead ARGS=--write`.\n\n" + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
