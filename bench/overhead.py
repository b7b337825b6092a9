"""What does measuring cost, and does the session's own account agree?

*Side by side*: the job with stepscope and the job without run at the same time on the same core, which the kernel gives
to each in turn for some milliseconds. What the host does to one - another virtual machine's load, the clock - it does
to the other, so that a pair's ratio varies by 1 % where two runs one after the other vary by 5 to 20 %. The agent's
share is larger than in a job alone: what it does by the clock falls on half the CPU time.
*Alone*: what the session itself accounts for (report.json, ``overhead``), of a job that has a core to itself.
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

import numpy as np

from _stats import Interval, bootstrap
from stepscope.store.reader import read as open_session
from stepscope.wire.kinds import Kind
from stepscope.wire.ring import RingWriter

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "programs" / "steps.py"
PAGE = ROOT / "docs" / "benchmarks" / "overhead.md"
STEPS = {"1": 800, "5": 160, "80": 12}
"""Steps per chunk for each step length in milliseconds: a chunk takes about a second."""
CHUNKS, CHUNKS_BESIDE = 60, 10
"""Chunks of a run alone, a minute or more, and of one that shares its core, where all takes twice as long."""
NOTES = """*Side by side*: relative change of the median step time, with against without, of two jobs that share one
core at the same time; mean over pairs, bootstrap interval of 95 %; *width* is half of it; *two plain jobs*: neither
with stepscope, which is what the comparison itself is worth. *Alone*, on a core of its own for a minute or more: step
time; *account* is the median of what the sessions say level 0 costs, *bound* the highest upper bound of theirs.
*Gaps*: share of the time in which hot wrappers were detached. *Attached*: step time while they were attached against
the gap that followed, in the same process, median (of so many windows)."""
WINDOW_NS = 250_000_000
LEAST_PAIRS = 8
"""Minimum number of pairs of jobs side by side for a result."""
MIN_WINDOW = 30
"""Minimum number of steps of a window and of the gap that it is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of the program. Times are CLOCK_MONOTONIC nanoseconds."""

    spawned: int
    exited: int
    said: Mapping[str, float]
    chunks: Sequence[float]
    """Seconds per step of each chunk."""
    ends: Sequence[int]
    """End of each chunk."""
    report: Mapping[str, object] | None
    attached: Sequence[float] = ()
    """Step time in windows with all wrappers, over that in the neighbouring gaps, less one."""


class Running:
    """The program, started with the command ``job``, with stepscope or without."""

    def __init__(self, job: Sequence[str], arguments: Sequence[str], *, measured: bool) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="stepscope-overhead-")
        self._folder = Path(self._scratch.name)
        self._measured = measured
        run = [sys.executable, "-m", "stepscope", "run", "--quiet", "--report-json", "report.json", "--"]
        command = [*(run if measured else []), *job, str(PROGRAM), *arguments]
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._spawned = time.monotonic_ns()
        with (self._folder / "stderr").open("wb") as errors:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=env, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def wait(self) -> Ran:
        """Wait until it has ended."""
        out, _ = self._process.communicate(timeout=900)
        exited = time.monotonic_ns()
        if self._process.returncode:
            raise RuntimeError((self._folder / "stderr").read_text()[-2000:])
        said = json.loads(out.strip().splitlines()[-1])
        data = json.loads((self._folder / "report.json").read_text()) if self._measured else None
        attached = beside_gaps(next(self._folder.glob("*.stepscope"))) if self._measured else []
        chunks = [seconds / said["steps"] for seconds in said["seconds"]]
        self._scratch.cleanup()
        return Ran(
            spawned=self._spawned,
            exited=exited,
            said=said,
            chunks=chunks,
            ends=said["ends"],
            report=data,
            attached=attached,
        )


def execute(job: Sequence[str], arguments: Sequence[str], *, measured: bool) -> Ran:
    """Run the program to its end."""
    return Running(job, arguments, measured=measured).wait()


def beside_gaps(session: Path) -> list[float]:
    """Cost of the attached wrappers: each window against the gap after it, in the job itself."""
    found = []
    for worker in open_session(session).workers:
        records, gaps = worker.with_gaps(), worker.gaps.take(worker.gaps.calls > 0)
        calls = np.sort(records.start_ns[np.isin(records.kind, [Kind.EXECUTION, Kind.FUNCTION])])
        for start, end, counted in zip(gaps.start_ns, gaps.end_ns, gaps.calls, strict=True):
            window = np.diff(calls[(calls < start) & (calls > start - WINDOW_NS)])
            if len(window) >= MIN_WINDOW and counted >= MIN_WINDOW:
                found.append(float(np.mean(window) * counted / (end - start)) - 1)
    return found


def interleaved(job: Sequence[str], arguments: Sequence[str], pairs: int) -> tuple[list[Ran], list[Ran]]:
    """Pairs of runs without and with, the order alternating."""
    plain: list[Ran] = []
    measured: list[Ran] = []
    for index in range(pairs):
        order = (False, True) if index % 2 == 0 else (True, False)
        for with_stepscope in order:
            (measured if with_stepscope else plain).append(execute(job, arguments, measured=with_stepscope))
    return plain, measured


def side_by_side(
    job: Sequence[str], arguments: Sequence[str], pairs: int, *, width: float, control: bool
) -> tuple[Interval, int]:
    """Relative change of the step time of jobs that run at the same time on one core; of two plain ones as ``control``.

    A pair's ratio is that of the medians of the chunks during which both ran; the ratios are averaged as logarithms
    and resampled. Pairs are run until the interval is at most ``width`` to each side, which says nothing of where it
    lies, but at least LEAST_PAIRS and at most ``pairs``. Returns their number as well.
    """
    ratios: list[float] = []
    found = Interval(value=0.0, low=-math.inf, high=math.inf)
    for index in range(pairs):
        order = (False, True) if index % 2 == 0 else (True, False)
        running = {second: Running(job, arguments, measured=second and not control) for second in order}
        plain, measured = running[False].wait(), running[True].wait()
        began = max(run.ends[0] for run in (plain, measured))
        ended = min(run.ends[-1] for run in (plain, measured))
        both = [
            median(chunk for chunk, end in zip(run.chunks[1:], run.ends[1:], strict=True) if began < end <= ended)
            for run in (plain, measured)
        ]
        ratios.append(math.log(both[1] / both[0]))
        print(f"{index + 1}: {math.expm1(ratios[-1]):+.2%}", end=" ", file=sys.stderr, flush=True)
        if len(ratios) >= LEAST_PAIRS:
            found = bootstrap(ratios, mean)
            if found.high - found.low <= 2 * width:
                break
    return Interval(value=math.expm1(found.value), low=math.expm1(found.low), high=math.expm1(found.high)), len(ratios)


def account(measured: Sequence[Ran]) -> tuple[float, float, float, float]:
    """Summary of the sessions' accounts: median ratio, lowest low, highest high, median core share of the sidecar."""
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


def _number(report: Mapping[str, object] | None, field: str) -> float:
    overhead = report["overhead"] if report is not None else {}
    value = overhead.get(field) if isinstance(overhead, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0


def record_cost(records: int = 1_000_000, chunk: int = 100_000) -> list[float]:
    """Nanoseconds per record, including two clock readings, for each chunk of records into one ring."""
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


def each_length(kinds: Sequence[str], lengths: Sequence[str], chunks: int) -> list[tuple[str, str, list[str]]]:
    """(kind, length, arguments of the program) of each row."""
    return [
        (kind, length, ["--kind", kind, "--step-ms", length, "--steps", str(STEPS[length]), "--chunks", str(chunks)])
        for kind in kinds
        for length in lengths
    ]


def beside(
    job: Sequence[str], kinds: Sequence[str], lengths: Sequence[str], pairs: int, *, width: float, control: bool
) -> list[str]:
    """The table of jobs side by side; of two plain ones as ``control``."""
    lines = ["| loop | steps of about | side by side, wall clock | width | pairs |", "|---|---|---|---|---|"]
    for kind, length, arguments in each_length(kinds, lengths, CHUNKS_BESIDE):
        wall, count = side_by_side(job, arguments, pairs, width=width, control=control)
        half = f"±{50 * (wall.high - wall.low):.2f} %"
        plain = ", two plain jobs" if control else ""
        lines.append(f"| {kind} | {length} ms{plain} | {wall.percent()} | {half} | {count} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def alone(job: Sequence[str], kinds: Sequence[str], lengths: Sequence[str], runs: int) -> list[str]:
    """The table of the sessions' own accounts."""
    lines = [
        "| loop | step, alone | account | bound | gaps | attached | sidecar, of a core |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, _, arguments in each_length(kinds, lengths, CHUNKS):
        measured = [execute(job, arguments, measured=True) for _ in range(runs)]
        ratio, _, high, sidecar = account(measured)
        step = median(median(run.chunks) for run in measured)
        gaps = median(_number(run.report, "rest_ratio") for run in measured)
        attached = [ratio for run in measured for ratio in run.attached]
        windows = f"{median(attached):+.1%} (of {len(attached)})" if attached else "-"
        lines.append(
            f"| {kind} | {1000 * step:.2f} ms | {ratio:.3%} | {high:.3%} | {gaps:.0%} | {windows} | {sidecar:.2%} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def start_delay(job: Sequence[str], runs: int) -> str:
    """Delay of the program's first line."""
    arguments = ["--step-ms", "0.1", "--steps", "5", "--chunks", "1"]
    plain, measured = interleaved(job, arguments, runs)
    first = [median((run.said["began"] - run.spawned) / 1e6 for run in group) for group in (plain, measured)]
    imported = [
        median((run.said["imported"] - run.said["began"]) / 1e6 for run in group) for group in (plain, measured)
    ]
    return (
        f"The job's first line runs {first[1] - first[0]:.0f} ms later ({first[1]:.0f} instead of {first[0]:.0f} ms); "
        f"importing TensorFlow takes {imported[1] - imported[0]:+.0f} ms ({imported[0]:.0f} ms without)."
    )


def report_delay(job: Sequence[str]) -> str:
    """Delay of the report after the end of a job of 10^5 steps."""
    arguments = ["--kind", "loop", "--step-ms", "0.1", "--steps", "10000", "--chunks", "9"]
    plain, measured = interleaved(job, arguments, 1)
    after = [(group[0].exited - group[0].said["ended"]) / 1e9 for group in (plain, measured)]
    return (
        f"After 10^5 steps the command has ended, report and all, {after[1]:.2f} s after the program's last line; "
        f"without stepscope the interpreter alone takes {after[0]:.2f} s to end."
    )


def main() -> int:
    """Run the requested parts and print the results."""
    parser = argparse.ArgumentParser(description="what measuring costs")
    parser.add_argument("--pairs", type=int, default=30, help="pairs of runs for each step length, at most")
    parser.add_argument("--width", type=float, default=0.018, help="of the interval side by side, to each side")
    parser.add_argument("--control", action="store_true", help="side by side, but neither of the two with stepscope")
    parser.add_argument("--kinds", default="fit,loop", help="fit, loop")
    parser.add_argument("--lengths", default="1,5,80", help="milliseconds, of 1, 5 and 80")
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--runs", type=int, default=3, help="runs alone for each step length")
    parser.add_argument("--only", choices=("beside", "alone", "start", "report", "record"), help="one part")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/overhead.md")
    parser.add_argument("--cpu", default=str(max(os.sched_getaffinity(0))), help="the job's core, or: all")
    options = parser.parse_args()
    job = [*([] if options.cpu == "all" else ["taskset", "-c", options.cpu]), options.python]
    parts: list[str] = []
    if options.only in {None, "record"}:
        costs = record_cost()
        parts.append(
            f"A record costs {median(costs):.0f} ns (first 10^5: {costs[0]:.0f}, last 10^5 of 10^6: {costs[-1]:.0f}), "
            "two readings of the clock included."
        )
    if options.only in {None, "start"}:
        parts.append(start_delay(job, 5))
    if options.only in {None, "report"}:
        parts.append(report_delay(job))
    kinds, lengths = options.kinds.split(","), options.lengths.split(",")
    if options.only in {None, "beside"}:
        parts.append(
            "\n".join(beside(job, kinds, lengths, options.pairs, width=options.width, control=options.control))
        )
    if options.only in {None, "alone"}:
        parts.append("\n".join(alone(job, kinds, lengths, options.runs)))
    page = "\n\n".join([*parts, NOTES]) + "\n"
    print(page)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text("# What measuring costs\n\nPrinted by `make bench-overhead ARGS=--write`.\n\n" + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
