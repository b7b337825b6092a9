"""What does tracing single runs cost a cluster as TensorFlow 1 has it, whose tasks nobody started for being traced?

Usage: story.py [--sizes 512x128:90,512x1024:90,...] [--runs N] [--write]

Enables an environment of its own, starts an unmodified parameter server and two workers in it
(``programs/cluster_task.py``), asks for op traces of worker 0's training step as the page's Trace button does, and sets
the traced steps against their untraced neighbours, by the times that the program notes itself. In turn with each
capture the program traces as many of its steps by itself, with TensorFlow's own ``RunOptions``.
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

import _left_behind
from _stats import Interval, bootstrap
from always_on import environment_of
from stepscope.launcher import jobs
from stepscope.launcher.jobs import RunningJob
from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.model.session.session import CaptureInfo, Manifest
from stepscope.store.manifests import read_manifest
from stepscope.tables.errors import CaptureError
from stepscope.use_cases import trace
from stepscope.wire import commands

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "story.md"
PROGRAM = ROOT / "bench" / "programs" / "cluster_task.py"
TASK = "train, loss:0"
SIZES = "64x16:40,512x128:70,512x1024:110,512x2560:150"
"""Sizes with steps of 3 to some 250 ms on two cores; longer ones get more time for as many captures."""
QUOTA_BYTES = 1 << 30
ALLOWED = 0.03
"""Allowed share of the step's time."""
ENOUGH = 6
"""Minimum number of captures: an interval of fewer says too little."""
WARM = 20
"""Number of steps before the first capture."""
LONG = 5.0
"""Length in medians above which a step holds something else: another process took the core."""
PATIENCE_S = 300.0
ASKED = 5
"""Number of requests of a capture before the reason for its refusal is taken to be final."""
HEAD = """# Traced steps of a cluster

Printed by `make bench-story ARGS=--write`. A parameter server and two workers with a `MonitoredTrainingSession`,
unmodified, in an enabled environment; worker 0's `session.run([train, loss])` is traced while it trains. In turn with
that the program traces as many of its runs by itself: `RunOptions(trace_level=FULL_TRACE)` and a `RunMetadata`, which
is TensorFlow's part of what a traced run costs ([decision 0014](../decisions/0014-captures.md)).

"""
NOTES = """*Size*: side of the square weights (four layers) x rows of a batch. *Step*: median neighbour. *Longer*: what
the median traced step took longer than the median of as many steps before and after, median over captures with its
bootstrap interval of 95 %; *first*: likewise of the first run of each capture alone, as in a capture of one run.
*Within 3 %*: *undecided* where the interval holds more and less, or captures are fewer than six. *stepscope's part*:
what its traced steps took longer than those of the program itself, capture by capture; *told apart* from nothing where
the whole interval is above. *Late*: how much longer than the median neighbour the steps took in which the traces were
written, the sum of one capture (median), and the CPU time of the thread that wrote them. *Read*: CPU time of the
sidecar. All three processes share the machine's cores; times are the program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Size of the model and its batch, and the time to observe it."""

    side: int
    batch: int
    seconds: float

    @property
    def text(self) -> str:
        """Text as given and printed."""
        return f"{self.side}x{self.batch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """Traced steps and their neighbours, in milliseconds."""

    usual: float
    median: float
    first: float


@dataclass(slots=True, kw_only=True)
class Seen:
    """Results of one cluster; groups of traced steps in the order of the requests, None: unusable."""

    stepscope: list[Traced | None] = field(default_factory=list)
    itself: list[Traced | None] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    captures: list[CaptureInfo] = field(default_factory=list)


class Said(msgspec.Struct, frozen=True):
    """Output of a worker at its end; times CLOCK_MONOTONIC."""

    runs: dict[str, int]
    ends: list[int]
    own: list[tuple[int, int]]
    """First and last but one of the steps that it traced itself."""


class Cluster:
    """The processes, from worker 0's first published steps on."""

    def __init__(self, folder: Path, python: str, size: Size) -> None:
        self._until = folder / "until"
        self._own = folder / "own"
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        ps, *workers = (f"127.0.0.1:{listener.getsockname()[1]}" for listener in held)
        for listener in held:
            listener.close()
        places = msgspec.json.encode({"ps": [ps], "worker": workers}).decode()
        common = [python, str(PROGRAM), "--cluster", places, "--until", str(self._until), "--pause-ms", "0"]
        common += ["--side", str(size.side), "--batch", str(size.batch), "--layers", "4"]
        own = ["--own", str(self._own)]
        self.processes = [
            subprocess.Popen(
                [*common, "--job", job, "--task", str(number), *(own if (job, number) == ("worker", 0) else [])],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for job, number in (("ps", 0), ("worker", 0), ("worker", 1))
        ]
        self._job = self._stepping()
        self.session = Path(self._job.status.session)

    def _stepping(self) -> RunningJob:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = next((job for job in jobs.running() if job.status.pid == self.processes[1].pid), None)
            if found is not None and found.status.steps > WARM:
                return found
            time.sleep(0.5)
        raise RuntimeError("worker 0 makes no steps")

    def trace(self, runs: int) -> None:
        """One capture of worker 0; returns when its neighbours are recorded."""
        for left in reversed(range(ASKED)):
            ask = CaptureAsk(id=commands.new_id(), task=TASK, steps=runs, force=True)
            try:
                trace.ask(self._job, ask, str, PATIENCE_S)
            except CaptureError:
                if not left:
                    raise
            else:
                return

    def trace_itself(self, runs: int) -> None:
        """Make worker 0 trace itself; returns when its neighbours are over."""
        beside = self._own.with_suffix(".new")
        beside.write_text(str(runs))
        beside.rename(self._own)
        deadline = time.monotonic() + PATIENCE_S
        while self._own.exists() and time.monotonic() < deadline:
            time.sleep(0.1)

    def end(self) -> Said:
        """Let it end; returns worker 0's output."""
        self._until.touch()
        said = [worker.communicate(timeout=PATIENCE_S)[0] for worker in self.processes[1:]]
        self.processes[0].terminate()
        self.processes[0].wait()
        return msgspec.json.decode(said[0].splitlines()[-1], type=Said)

    def manifest(self) -> Manifest:
        """Manifest of worker 0's session, after its sidecar has ended it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and read_manifest(self.session).state == "running":
            time.sleep(0.5)
        return read_manifest(self.session)


def group(durations: npt.NDArray[np.float64], mine: slice, after: int) -> Traced | None:
    """The traced steps ``mine`` against as many before, and from ``after`` on; None where there are fewer."""
    count = mine.stop - mine.start
    before, later = durations[max(0, mine.start - count) : mine.start], durations[after : after + count]
    if len(before) < count or len(later) < count:
        return None
    usual = float(np.median(np.concatenate([before, later])))
    traced = durations[mine]
    kept = traced[traced < LONG * usual]
    return Traced(usual=usual, median=float(np.median(kept)), first=float(traced[0])) if len(kept) else None


def captured(seen: Seen, ends: npt.NDArray[np.int64], capture: CaptureInfo, origin: int) -> None:
    """Add the effect of one capture on the steps; steps that overlap its first to last run count as traced."""
    began = origin + capture.at_ns
    stopped = began + capture.recorded_ns
    written = stopped + capture.export_ns
    starts, ends = ends[:-1], ends[1:]
    durations = (ends - starts) / 1e6
    first, last = int(np.searchsorted(ends, began, "right")), int(np.searchsorted(starts, stopped))
    after = int(np.searchsorted(starts, written))
    found = group(durations, slice(first, last), after) if last - first == capture.steps else None
    seen.stepscope.append(found)
    if found is not None:
        seen.late_ms.append(float((durations[last:after] - found.usual).sum()))
        seen.captures.append(capture)


def measure(python: str, folder: Path, size: Size, runs: int) -> Seen:
    """One cluster: captures of stepscope's and of the program's own in turn."""
    folder.mkdir()
    cluster = Cluster(folder, python, size)
    until = time.monotonic() + size.seconds
    while time.monotonic() < until:
        cluster.trace(runs)
        cluster.trace_itself(runs)
    said = cluster.end()
    manifest = cluster.manifest()
    seen = Seen()
    ends = np.array(said.ends, np.int64)
    for capture in manifest.captures:
        if capture.outcome == "done":
            captured(seen, ends, capture, manifest.origin_monotonic_ns)
    for first, last in said.own:
        seen.itself.append(group(np.diff(ends) / 1e6, slice(first - 1, last - 1), last - 1))
    return seen


def in_ms(change: Interval) -> str:
    """Change with its interval, in ms."""
    return f"{change.value:+.2f} ms ({change.low:+.2f} to {change.high:+.2f})"


def line(size: Size, who: str, traced: Sequence[Traced | None]) -> str:
    """Added time of the traced steps of one kind."""
    found = [each for each in traced if each is not None]
    if not found:
        return f"| {size.text} | - | {who} | 0 | - | - | - | - |"
    change = bootstrap([each.median / each.usual - 1 for each in found])
    longer = bootstrap([each.median - each.usual for each in found])
    first = bootstrap([each.first - each.usual for each in found])
    within = "yes" if change.high <= ALLOWED else "**no**" if change.low > ALLOWED else "undecided"
    if len(found) < ENOUGH:
        within = "undecided"
    return (
        f"| {size.text} | {median(each.usual for each in found):.1f} ms | {who} | {len(found)} | {change.percent()} "
        f"| {within} | {in_ms(longer)} | {in_ms(first)} |"
    )


def borne(size: Size, traced: Sequence[Traced | None]) -> str:
    """The step that bears the added time of traced steps of this size; "" if none is seen to."""
    found = [each.median - each.usual for each in traced if each is not None]
    longer = bootstrap(found) if len(found) >= ENOUGH else None
    if longer is None or longer.low <= 0:
        return ""
    least, usual, most = (f"{value / ALLOWED:.0f}" for value in (longer.low, longer.value, longer.high))
    return f"What a traced run of {size.text} takes longer is 3 % of a step of {usual} ms ({least} to {most})."


def rest(size: Size, seen: Seen) -> str:
    """Other costs of a capture, and stepscope's share of a traced step."""
    pairs = [
        (ours.median - ours.usual) - (its.median - its.usual)
        for ours, its in zip(seen.stepscope, seen.itself, strict=False)
        if ours is not None and its is not None
    ]
    if not pairs or not seen.captures:
        return f"| {size.text} | - | - | - | - | - | - |"
    more = bootstrap(pairs)
    told = "undecided" if len(pairs) < ENOUGH else "**yes**" if more.low > 0 else "no"
    cpu, read = (median(getattr(c, name) for c in seen.captures) / 1e6 for name in ("cpu_ns", "read_cpu_ns"))
    files = median(capture.bytes for capture in seen.captures) / 1e3
    return (
        f"| {size.text} | {in_ms(more)} | {told} | {median(seen.late_ms):+.1f} ms | {cpu:.1f} ms | {files:.0f} kB "
        f"| {read:.0f} ms |"
    )


@_left_behind.nothing_stays()
def main() -> int:
    """Run the clusters and print the tables."""
    parser = argparse.ArgumentParser(description="what traced runs cost a cluster")
    parser.add_argument("--sizes", default=SIZES, help="side x batch : seconds of each")
    parser.add_argument("--runs", type=int, default=10, help="of one capture")
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/story.md")
    options = parser.parse_args()
    steps = [
        "| size | step | who traces | captures | longer | within 3 % | longer | first |",
        "|---|---|---|---|---|---|---|---|",
    ]
    more = [
        "| size | stepscope's part | told apart | late | CPU to write | files | read |",
        "|---|---|---|---|---|---|---|",
    ]
    lengths: list[str] = []
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="stepscope-story-", ignore_cleanup_errors=True) as scratch:
        python, _ = environment_of(Path(scratch), options.python, QUOTA_BYTES)
        for word in options.sizes.split(","):
            text, _, seconds = word.partition(":")
            side, _, batch = text.partition("x")
            size = Size(side=int(side), batch=int(batch), seconds=float(seconds))
            seen = measure(python, Path(scratch) / text, size, options.runs)
            steps += [line(size, "stepscope", seen.stepscope), line(size, "the program", seen.itself)]
            more.append(rest(size, seen))
            lengths += filter(None, [borne(size, seen.stepscope)])
            print(*steps[-2:], more[-1], sep="\n", file=sys.stderr, flush=True)
    after = os.getloadavg()[0]
    load = f"{os.cpu_count()} cores; load {before:.1f} before, {after:.1f} at the end, of which the cluster is a part."
    told = f"Captures of {options.runs} runs. {NOTES}"
    page = "\n".join([*steps, "", *more, "", *lengths, *([""] if lengths else []), told, "", load, ""])
    print(page)
    if options.write:
        PAGE.write_text(HEAD + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
