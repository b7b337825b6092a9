"""What does an op trace of a running job cost it, compared with TensorFlow's own profiler on the same job?

The job notes the end of each of its steps by itself; what is said of traced steps and of their neighbours comes from
there, not from stepscope's records. Runs with stepscope's captures and runs in which the program profiles itself
(start, ten steps, stop in the training thread) take turns; both are measured by ``stepscope run``, so that they differ
in the captures alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from _stats import Interval, bootstrap
from _traced_job import Ears, Job, Window
from stepscope import store
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import line_times, op_times
from stepscope.model.session.session import CaptureInfo
from stepscope.readers.xplane import xspace

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "capture.md"
NEIGHBOURS = 10
APART = 100
"""Steps between two profiles that are not ours."""
WARM_CALLS = 40
"""Steps of small calls before a profile that is not ours."""
OF_CALLS = """A profile of 20,000 small calls, ten steps of 2,000. *Late*: how much longer than the median call those of
1 ms and more took while the trace was written: the longest of all captures, and the sum of one (median). *Sum to CPU*:
that sum against the CPU time of the thread that wrote it, capture by capture, with its interval of 95 %; *a thread that
counts* takes as much CPU time and touches no memory: what it has there is the price of two threads on one core. *No
core free*: another thread of the program keeps each of the other cores busy; *one core for all*: it may use one."""
OF_MODELS = """One captured training step. *Job's peak memory*: what a capture adds to it. *In the session*: the step's
op trace; the graphs with their source lines stand there once, however many steps are captured. *Ops kept*: of the
framework's file, those whose name, type, calls and time the session has. *Placed*: share of op time on a line of user
code, or on a layer and the line that built it. *Report*: the file that `stepscope report -o` makes of the session."""
SETTLED = 1.5
"""Steps after a trace was written from which on it has no more effect."""
LONG = 5.0
"""Length in medians above which a step holds something else: another process took the core."""
NOTES = """*Traced steps*: change of the median traced step against the median of the ten steps before and the ten
after, median over captures with its bootstrap interval of 95 %. *Late*: how much longer than the median neighbour the
steps took in which the trace was written or stopped: the longest of all captures, and the sum of one capture (median),
less what steps in as long a time after it took longer than the median. *CPU to write*: of stepscope's thread, which
runs beside the job. *Less CPU*: the sum less that time, capture by capture, with its interval; *a thread that
counts* takes as much CPU time and does nothing else, so what it has there is the price of two threads on one core.
*Share*: what captures cost, of the job's wall time, as booked; a delay that is longer than the CPU time counts instead
of it. *Listening*: most TCP sockets of the job that listened in one of so many looks at its network namespace and its
descriptors while captures were made."""


@dataclass(slots=True, kw_only=True)
class Seen:
    """Measurements of the runs of one kind."""

    step_ms: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    longest_ms: list[float] = field(default_factory=list)
    summed_ms: list[float] = field(default_factory=list)
    beyond_ms: list[float] = field(default_factory=list)
    """Time beyond the writer's CPU time, if another thread than the training's wrote."""
    cpu_ms: list[float] = field(default_factory=list)
    captures: list[CaptureInfo] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    listening: int = 0
    looks: int = 0


def windows(captures: Sequence[CaptureInfo], origin: int) -> list[Window]:
    """Times in which captures recorded and were written."""
    found = []
    for capture in captures:
        began = origin + capture.at_ns
        stopped = began + capture.recorded_ns
        found.append(Window(began=began, stopped=stopped, written=stopped + capture.export_ns, cpu_ns=capture.cpu_ns))
    return found


def against_neighbours(seen: Seen, ends: npt.NDArray[np.int64], profiles: Sequence[Window]) -> None:
    """Add the effect of each profile on the steps."""
    starts, ends = ends[:-1], ends[1:]
    durations = (ends - starts) / 1e6
    for one in profiles:
        traced = durations[(starts >= one.began) & (ends <= one.stopped)]
        late = durations[(ends > one.stopped) & (starts < one.written)]
        before = durations[ends <= one.began][-NEIGHBOURS:]
        after = durations[starts >= one.written][:NEIGHBOURS]
        beside = np.concatenate([before, after])
        if len(traced) < NEIGHBOURS // 2 or len(beside) < NEIGHBOURS:
            continue
        usual = float(np.median(beside))
        seen.step_ms.append(usual)
        seen.ratios.append(float(np.median(traced[traced < LONG * usual])) / usual - 1)
        extra = late - usual
        seen.longest_ms.append(float(extra.max()) if len(extra) else 0.0)
        from_here = one.written + int(SETTLED * usual * 1e6)
        calm = from_here + one.written - one.stopped - int(1e6 * extra.sum())
        control = durations[(ends > from_here) & (starts < calm)] - usual
        seen.summed_ms.append(float(extra.sum() - control.sum()))
        if one.cpu_ns:
            seen.cpu_ms.append(one.cpu_ns / 1e6)
            seen.beyond_ms.append(seen.summed_ms[-1] - seen.cpu_ms[-1])


def run_ours(seen: Seen, python: Sequence[str], words: Sequence[str], count: int, budget: str) -> None:
    """Run with ``count`` captures on a schedule that the budget spaces."""
    with tempfile.TemporaryDirectory(prefix="stepscope-capture-") as scratch:
        job = Job(Path(scratch), python, *words, budget=budget)
        ears = Ears(job.pid())
        ears.start()
        job.trace("--steps", "10", "--every", "0.1", "--count", str(count), "--timeout", "600")
        job.wait_for(lambda: len(job.captures()) >= count)
        ears.stop()
        seen.listening, seen.looks = max(seen.listening, ears.most), seen.looks + ears.looks
        noted = job.end()
        captures = job.captures()
        against_neighbours(seen, np.array(noted.ends, np.int64), windows(captures, job.origin()))
        seen.captures += captures
        seen.shares.append(job.share())


def run_own(seen: Seen, python: Sequence[str], words: Sequence[str], count: int, like: Seen | None = None) -> None:
    """Run with the program profiling itself, or using as much CPU time in another thread as ``like`` says."""
    with tempfile.TemporaryDirectory(prefix="stepscope-capture-") as scratch:
        burn_ms = median(like.cpu_ms) if like else 0.0
        job = Job(Path(scratch), python, *words, "--own", str(count), "--burn", str(burn_ms), "--every", str(APART))
        if like:
            time.sleep(1.2 * count * APART * median(like.step_ms) / 1e3)
        else:
            job.wait_for(lambda: job.profiled() >= count)
        noted = job.end()
        against_neighbours(seen, np.array(noted.ends, np.int64), noted.profiles())


def row(length: str, how: str, seen: Seen) -> str:
    """A line of the table of steps."""
    ratio: Interval = bootstrap(seen.ratios)
    beyond = bootstrap(seen.beyond_ms) if seen.beyond_ms else None
    less = f"{beyond.value:+.1f} ms ({beyond.low:+.1f} to {beyond.high:+.1f})" if beyond is not None else "-"
    cpu = median(seen.cpu_ms) if seen.cpu_ms else None
    share = f"{max(seen.shares):.2%}" if seen.shares else "-"
    listening = f"{seen.listening} of {seen.looks:,} looks" if seen.looks else "-"
    return (
        f"| {length} ms ({median(seen.step_ms):.1f}) | {how} | {len(seen.ratios)} | {ratio.percent()} "
        f"| {max(seen.longest_ms):.0f} ms | {median(seen.summed_ms):+.1f} ms "
        f"| {f'{cpu:.1f} ms' if cpu is not None else '-'} | {less} | {share} | {listening} |"
    )


def steps(python: Sequence[str], lengths: Sequence[str], count: int, rounds: int, budget: str) -> str:
    """The table of traced steps, with alternating runs of both ways."""
    lines = [
        "| step | profiler | captures | traced steps | late: most | sum | CPU to write | less CPU | share | listens |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for length in lengths:
        words = ["--kind", "fit", "--step-ms", length]
        ours, own, burnt = Seen(), Seen(), Seen()
        for _ in range(rounds):
            run_ours(ours, python, words, count, budget)
            run_own(own, python, words, count)
            run_own(burnt, python, words, count, ours)
        lines += [row(length, "stepscope", ours), row(length, "TensorFlow's own", own)]
        lines.append(row(length, "none, a thread that counts", burnt))
        print("\n".join(lines[-3:]), file=sys.stderr, flush=True)
    return "\n".join(lines)


def calls(python: Sequence[str], pinned: Sequence[str], rounds: int) -> str:
    """Measure 20,000 small calls in one capture: the effect on a loop of small calls while they are written."""
    free, full, one, own = Calls(), Calls(), Calls(), Calls()
    full_burnt, one_burnt = Calls(), Calls()
    fill = ("--fill", str(len(os.sched_getaffinity(0)) - 1))
    for _ in range(rounds):
        run_calls(free, python)
        run_calls(full, python, *fill)
        run_calls(full_burnt, python, *fill, *_burning(full))
        run_calls(one, [*pinned, *python])
        run_calls(one_burnt, [*pinned, *python], *_burning(one))
        run_calls(own, python, "--own", "1")
        print(free, full, full_burnt, one, one_burnt, own, sep="\n", file=sys.stderr, flush=True)
    lines = [
        "| profiler | captures | late: most | sum | CPU to write | sum to CPU |",
        "|---|---|---|---|---|---|",
        free.row("stepscope, a core free"),
        full.row("stepscope, no core free"),
        full_burnt.row("none, a thread that counts, no core free"),
        one.row("stepscope, one core for all"),
        one_burnt.row("none, a thread that counts, one core for all"),
        own.row("TensorFlow's own"),
    ]
    return "\n".join(lines)


@dataclass(slots=True)
class Calls:
    """Captures of a loop of small calls, of one kind."""

    longest_ms: list[float] = field(default_factory=list)
    summed_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def row(self, how: str) -> str:
        """A line of the table of small calls."""
        ratios = [late / cpu - 1 for late, cpu in zip(self.summed_ms, self.cpu_ms, strict=True) if cpu]
        sums = f"| {max(self.longest_ms):.1f} ms | {median(self.summed_ms):.0f} ms "
        cpu = f"| {median(self.cpu_ms):.0f} ms | {bootstrap(ratios).percent()} |" if ratios else "| - | - |"
        return f"| {how} | {len(self.summed_ms)} {sums}{cpu}"


def _of_steps(captures: Sequence[CaptureInfo]) -> list[CaptureInfo]:
    """The captures that were requested here and hold as many steps."""
    return [capture for capture in captures if capture.asked_by == "user" and capture.steps >= NEIGHBOURS]


def _burning(like: Calls) -> tuple[str, ...]:
    """Arguments that make the program use as much CPU time as its last capture did."""
    return ("--own", "1", "--burn", str(like.cpu_ms[-1]))


def run_calls(seen: Calls, python: Sequence[str], *words: str) -> None:
    """Run a loop of small calls with one capture, or with what ``words`` make the program do instead."""
    own = "--own" in words
    with tempfile.TemporaryDirectory(prefix="stepscope-capture-") as scratch:
        job = Job(Path(scratch), python, "--kind", "calls", "--every", str(WARM_CALLS), *words)
        while not own and not (asked := _of_steps(job.captures())):
            job.trace("--steps", str(NEIGHBOURS), "--force")  # once more where it is not yet known what a step is
        noted = job.end(by_itself=own)
        one = (noted.profiles() if own else windows(asked, job.origin()))[-1]
    usual = float(np.median(np.diff(noted.ends))) / noted.calls
    late = [(end - start - usual) / 1e6 for start, end in noted.gaps if end > one.stopped and start < one.written]
    if not one.cpu_ns:  # in the training thread, between two calls
        late = [(one.written - one.stopped) / 1e6]
    seen.longest_ms.append(max(late, default=0.0))
    seen.summed_ms.append(sum(late))
    seen.cpu_ms.append(one.cpu_ns / 1e6)


def peak_bytes(pid: int) -> int:
    """Highest resident memory since the last ``forget_peak``."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def forget_peak(pid: int) -> None:
    """Make the kernel reset the peak. Source: proc(5), clear_refs."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def memory(python: Sequence[str], models: Sequence[str]) -> str:
    """Measure one captured step of large models: what it adds to the job's peak memory, and to the session."""
    lines = [
        "| model | job's peak memory | framework's file | in the session | graphs, once | ops kept | placed | report |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model in models:
        with tempfile.TemporaryDirectory(prefix="stepscope-capture-") as scratch:
            job = Job(Path(scratch), python, "--kind", model)
            job.trace("--steps", "1", "--force")  # the first loads what is needed
            pid = job.pid()
            peaks = []
            for traced in (False, True) * 3:
                forget_peak(pid)
                if traced:
                    job.trace("--steps", "1", "--force")
                else:
                    time.sleep(10)
                peaks.append(peak_bytes(pid))
            job.end()
            captures = job.captures()[1:]
            session = Path(scratch) / "s.stepscope"
            stored = median(_stored(session / "captures", number) for number in range(2, 5))
            graphs = sum(path.stat().st_size for path in session.glob("workers/*/graphs-*"))
            kept, placed = _held(session)
            report = _report(session)
        more = median(b - a for a, b in zip(peaks[::2], peaks[1::2], strict=True))
        raw = median(capture.bytes for capture in captures)
        lines.append(
            f"| {model} | {more / 1e6:+.1f} MB | {raw / 1e3:.0f} kB | {stored / 1e3:.0f} kB | {graphs / 1e3:.0f} kB "
            f"| {kept} | {placed:.1%} | {report} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def _stored(captures: Path, number: int) -> int:
    """Bytes of a capture in the session, without the framework's own file."""
    files = [path for path in captures.rglob("*") if f"ops-{number:03d}" in str(path) and path.is_file()]
    return sum(path.stat().st_size for path in files if not path.name.endswith(".pb"))


def _held(session: Path) -> tuple[str, float]:
    """(ops of the last capture's file that the session has, of how many; share of op time with a place)."""
    found = store.open_session(session)
    last = found.op_traces[-1]
    trace = last.load()
    ours = {(row.name, row.type, row.calls, row.total_ps) for row in op_times.build(trace).rows()}
    (file,) = (session / "captures").glob(f"{last.name}*.pb")
    theirs = {(row.name, row.type, row.calls, row.total_ps) for row in op_times.build(xspace.read_file(file)).rows()}
    lines = line_times.build(trace, GraphIndex(max(found.workers, key=lambda worker: len(worker.graphs))))
    placed = sum(op.self_ps for op in lines.ops if op.place is not None or op.layer is not None)
    return f"{len(ours & theirs):,} of {len(theirs):,}", placed / max(1, lines.total_ps)


def _report(session: Path) -> str:
    """Whether the one-file report can be made from it, and its size."""
    target = session.with_name("report.html")
    command = [sys.executable, "-m", "stepscope", "report", str(session), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{target.stat().st_size / 1e3:.0f} kB" if target.exists() else f"none: {done.stderr[-80:]}"


def main() -> int:
    """Run the requested parts and print the results."""
    parser = argparse.ArgumentParser(description="what an op trace costs a running job")
    parser.add_argument("--count", type=int, default=15, help="captures of one run")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each way, in turn")
    parser.add_argument("--lengths", default="5,25,80", help="milliseconds, of 5, 25 and 80")
    parser.add_argument("--models", default="inception,video")
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--cpu", default=str(max(os.sched_getaffinity(0))), help="a core for the job")
    parser.add_argument("--only", choices=("steps", "calls", "memory"), help="one part")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/capture.md")
    options = parser.parse_args()
    pinned = ["taskset", "-c", options.cpu]
    python = [options.python]
    parts = []
    if options.only in {None, "steps"}:
        table = steps([*pinned, *python], options.lengths.split(","), options.count, options.rounds, options.budget)
        parts += [table, NOTES]
    if options.only in {None, "calls"}:
        parts += [calls(python, pinned, max(3, options.rounds)), OF_CALLS]
    if options.only in {None, "memory"}:
        parts += [memory(python, options.models.split(",")), OF_MODELS]
    page = "\n\n".join(parts) + "\n"
    print(page)
    if options.write:
        PAGE.write_text("# What an op trace costs\n\nPrinted by `make bench-capture ARGS=--write`.\n\n" + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
