"""What does tracing single runs cost a cluster as TensorFlow 1 has it, whose tasks nobody started for being traced?

Usage: story.py [--sides 256,512,1024] [--steps 1,10] [--captures N] [--write]

Enables an environment of its own, starts an unmodified parameter server and two workers in it
(``programs/cluster_task.py``), asks for op traces of worker 0's training step as the page's Trace button does, and sets
the traced steps against their untraced neighbours, by the times that the program notes itself.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import numpy.typing as npt

from _stats import bootstrap
from always_on import environment_of
from stepscope.app import jobs
from stepscope.app.jobs import RunningJob
from stepscope.model.session import CaptureInfo, Manifest
from stepscope.store.manifests import read_manifest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "story.md"
PROGRAM = ROOT / "benchmarks" / "programs" / "cluster_task.py"
TASK = "train, loss:0"
QUOTA_BYTES = 1 << 30
ALLOWED = 0.03
"""Of the step's time."""
NEIGHBOURS = 10
"""Steps on either side."""
LONG = 5.0
"""A step of so many medians holds something else: another process that took the core."""
PATIENCE_S = 300.0
ASKED = 5
"""How often a capture is asked for before the reason that it is refused for is taken to be final."""
HEAD = """# Traced steps of a cluster

Printed by `make bench-story ARGS=--write`. A parameter server and two workers with a `MonitoredTrainingSession`,
unmodified, in an enabled environment; worker 0's `session.run([train, loss])` is traced while it trains.

"""
NOTES = """*Side*: of the square weights, four layers. *Step*: median neighbour. *Traced steps*: change of the median
traced step against the median of the ten steps before and the ten after, median over captures with its bootstrap
interval of 95 %; *undecided* where that holds more and less than 3 %. *Late*: how much longer than the median neighbour
the steps took in which the traces were written, the sum of one capture (median), and the CPU time of the thread that
wrote them. *Read*: CPU time of the sidecar. All three processes share the machine's cores; times are the program's
own."""


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the captures of one kind showed."""

    step_ms: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    captures: list[CaptureInfo] = field(default_factory=list)


class Said(msgspec.Struct, frozen=True):
    """What a worker says at its end; times CLOCK_MONOTONIC."""

    runs: dict[str, int]
    ends: list[int]


class Cluster:
    """The processes, from worker 0's first published steps on."""

    def __init__(self, folder: Path, python: str, side: int) -> None:
        self._until = folder / "until"
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        ps, *workers = (f"127.0.0.1:{listener.getsockname()[1]}" for listener in held)
        for listener in held:
            listener.close()
        places = msgspec.json.encode({"ps": [ps], "worker": workers}).decode()
        common = [python, str(PROGRAM), "--cluster", places, "--until", str(self._until), "--pause-ms", "0"]
        common += ["--side", str(side), "--layers", "4"]
        self.processes = [
            subprocess.Popen(
                [*common, "--job", job, "--task", str(number)],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for job, number in (("ps", 0), ("worker", 0), ("worker", 1))
        ]
        self.session = Path(self._job().status.session)

    def _job(self) -> RunningJob:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = next((job for job in jobs.running() if job.status.pid == self.processes[1].pid), None)
            if found is not None and found.status.steps > 2 * NEIGHBOURS:
                return found
            time.sleep(0.5)
        raise RuntimeError("worker 0 makes no steps")

    def trace(self, steps: int) -> None:
        """One capture of worker 0; returns when its neighbours are recorded."""
        words = ["trace", str(self.processes[1].pid), "--task", TASK, "--steps", str(steps), "--force"]
        for _ in range(ASKED):
            done = subprocess.run(
                [sys.executable, "-m", "stepscope", *words], capture_output=True, text=True, check=False
            )
            if not done.returncode:
                return
        raise RuntimeError(done.stderr)

    def end(self) -> Said:
        """Let it end; what worker 0 says."""
        self._until.touch()
        said = [worker.communicate(timeout=PATIENCE_S)[0] for worker in self.processes[1:]]
        self.processes[0].terminate()
        self.processes[0].wait()
        return msgspec.json.decode(said[0].splitlines()[-1], type=Said)

    def manifest(self) -> Manifest:
        """Of worker 0's session, when its sidecar has ended it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and read_manifest(self.session).state == "running":
            time.sleep(0.5)
        return read_manifest(self.session)


def against_neighbours(seen: Seen, ends: npt.NDArray[np.int64], capture: CaptureInfo, origin: int) -> None:
    """Add what one capture did to the steps: those are traced that overlap the time from its first run to its last."""
    began = origin + capture.at_ns
    stopped = began + capture.recorded_ns
    written = stopped + capture.export_ns
    starts, ends = ends[:-1], ends[1:]
    durations = (ends - starts) / 1e6
    traced = durations[(ends > began) & (starts < stopped)]
    late = durations[(starts >= stopped) & (starts < written)]
    before = durations[ends <= began][-NEIGHBOURS:]
    after = durations[starts >= written][:NEIGHBOURS]
    beside = np.concatenate([before, after])
    if len(traced) != capture.steps or len(beside) < 2 * NEIGHBOURS:
        return
    usual = float(np.median(beside))
    kept = traced[traced < LONG * usual]
    if not len(kept):
        return
    seen.step_ms.append(usual)
    seen.ratios.append(float(np.median(kept)) / usual - 1)
    seen.late_ms.append(float((late - usual).sum()))
    seen.captures.append(capture)


def measure(python: str, folder: Path, side: int, steps: Sequence[int], count: int) -> dict[int, Seen]:
    """One cluster, captures of every length in turn."""
    folder.mkdir()
    cluster = Cluster(folder, python, side)
    for _ in range(count):
        for each in steps:
            cluster.trace(each)
    said = cluster.end()
    manifest = cluster.manifest()
    found = {each: Seen() for each in steps}
    for capture in manifest.captures:
        if capture.outcome == "done":
            ends = np.array(said.ends, np.int64)
            against_neighbours(found[capture.steps], ends, capture, manifest.origin_monotonic_ns)
    return found


def row(side: int, steps: int, seen: Seen) -> str:
    """A line of the table."""
    if not seen.ratios:
        return f"| {side} | - | {steps} | 0 | - | - | - | - | - | - |"
    cpu, read = (median(getattr(c, name) for c in seen.captures) / 1e6 for name in ("cpu_ns", "read_cpu_ns"))
    size = median(capture.bytes for capture in seen.captures) / 1e3
    change = bootstrap(seen.ratios)
    within = "yes" if change.high <= ALLOWED else "no" if change.low > ALLOWED else "undecided"
    return (
        f"| {side} | {median(seen.step_ms):.1f} ms | {steps} | {len(seen.ratios)} | {change.percent()} | {within} "
        f"| {median(seen.late_ms):+.1f} ms | {cpu:.1f} ms | {size:.0f} kB | {read:.0f} ms |"
    )


def main() -> int:
    """Run the clusters and print the table."""
    parser = argparse.ArgumentParser(description="what traced runs cost a cluster")
    parser.add_argument("--sides", default="256,512,1024")
    parser.add_argument("--steps", default="1,10", help="runs of one capture")
    parser.add_argument("--captures", type=int, default=15, help="of each length and size")
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/story.md")
    options = parser.parse_args()
    steps = [int(word) for word in options.steps.split(",")]
    lines = [
        "| side | step | runs traced | captures | traced steps | within 3 % | late | CPU to write | files | read |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="stepscope-story-", ignore_cleanup_errors=True) as scratch:
        python, _ = environment_of(Path(scratch), options.python, QUOTA_BYTES)
        for side in (int(word) for word in options.sides.split(",")):
            for each, seen in measure(python, Path(scratch) / str(side), side, steps, options.captures).items():
                lines.append(row(side, each, seen))
                print(lines[-1], file=sys.stderr, flush=True)
    after = os.getloadavg()[0]
    load = f"{os.cpu_count()} cores; load {before:.1f} before, {after:.1f} at the end, of which the cluster is a part."
    page = "\n".join(lines) + f"\n\n{NOTES}\n\n{load}\n"
    print(page)
    if options.write:
        PAGE.write_text(HEAD + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
