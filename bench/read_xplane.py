"""Op statistics and step breakdown of op traces: our reader against xprof's on the same files.

Real captures are copied on end until they have the asked number of events (``_xspace_copies``). Every reading is a
process of its own, the readers in turn; CPU time and peak memory count from after the imports. xprof is asked for
``framework_op_stats`` and ``input_pipeline_analyzer``, its cheapest way to both answers: the second finds what the
first has kept. A failure is a result, and so is an answer without steps.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

import _xspace_copies

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "read-xplane.md"
CAPTURES = ROOT.parent / "shared" / "data" / "xplane"
SOURCES = (CAPTURES / "tf-cpu-input-bound.xplane.pb", CAPTURES / "gpu-multi-worker.xplane.pb")
LARGE = 2_000_000
"""Number of events above which only files of the first source are read."""
SEEN_KIB = 1_024
"""Minimum memory for a ratio: less is hidden in what the imports left behind."""
HEAD = """# Reading op traces, beside xprof

Printed by `make bench-read-xplane XPROF=python-with-xprof ARGS=--write`. Real captures, copied on end to the stated
number of events; each reading in a process of its own, in turn; imports are not counted. Ours: read, op statistics,
steps and the parts of every step (`OpView.breakdown`); xprof's: `framework_op_stats`, then `input_pipeline_analyzer`,
which finds what the first has kept; neither is asked for more. CPU time and what peak memory grew by: medians of
{rounds} readings. Ratios are xprof's figure to ours. *Found*: rows of the table of ops, and steps, as each counts them.
Half of the events of `tf-cpu-input-bound` are bookkeeping of thread pools, which ours counts and leaves out;
`gpu-multi-worker` has none, and three times the bytes an event.

"""
OURS = """
import json, resource, sys, time
from pathlib import Path
from stepscope.derive import op_stats
from stepscope.derive.optrace.trace_view import OpView
from stepscope.readers.xplane import xspace as xplane

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before, began = peak(), time.process_time()
trace = xplane.read_file(Path(sys.argv[1]))
ops = len(op_stats.build(trace))
steps = len(OpView(trace).breakdown.per_step)
print(json.dumps({"cpu_s": time.process_time() - began, "peak_kib": peak() - before, "ops": ops, "steps": steps}))
"""
XPROF = """
import json, os, resource, sys, tempfile, time
import xprof.convert.raw_to_tool_data as convert

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def rows(content, table):
    tables = json.loads(content)
    return len((tables[table] if isinstance(tables, list) else tables)["rows"])

with tempfile.TemporaryDirectory(dir=os.path.dirname(sys.argv[1])) as folder:  # it writes its caches beside the file
    path = os.path.join(folder, "host.xplane.pb")
    os.link(sys.argv[1], path)
    before, began = peak(), time.process_time()
    ops, _ = convert.xspace_to_tool_data([path], "framework_op_stats", {})
    steps, _ = convert.xspace_to_tool_data([path], "input_pipeline_analyzer", {})
    used, grown = time.process_time() - began, peak() - before
print(json.dumps({"cpu_s": used, "peak_kib": grown, "ops": rows(ops, 0), "steps": rows(steps, 1)}))
"""
TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Figures of one process. ``trouble``: why there are none."""

    cpu_s: float = 0.0
    peak_kib: float = 0.0
    ops: int = 0
    steps: int = 0
    trouble: str = ""

    def cells(self) -> str:
        """CPU time, memory, and results."""
        if self.trouble:
            return f"{self.trouble} | - | -"
        return f"{self.cpu_s:.3f} s | {self.peak_kib / 1024:.0f} MiB | {self.ops}, {self.steps}"


def read(python: str, program: str, file: Path) -> Reading:
    """Run one reader."""
    try:
        done = subprocess.run(
            [python, "-c", program, str(file)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Reading(trouble=f"no answer in {TIMEOUT_S} s")
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return Reading(trouble=last[0][:60].replace("|", "/"))
    return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=Reading)


def measured(xprof: str, file: Path, rounds: int) -> tuple[Reading, Reading]:
    """Medians of both readers, which alternate."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(read(sys.executable, OURS, file))
        theirs.append(read(xprof, XPROF, file))
    return middle(ours), middle(theirs)


def middle(readings: Sequence[Reading]) -> Reading:
    """The median of each figure; a failure if one failed."""
    failed = [one for one in readings if one.trouble]
    if failed:
        return failed[0]
    return Reading(
        cpu_s=median(one.cpu_s for one in readings),
        peak_kib=median(one.peak_kib for one in readings),
        ops=readings[0].ops,
        steps=readings[0].steps,
    )


def row(source: Path, events: int, size: int, ours: Reading, theirs: Reading) -> str:
    """Row of one file."""
    ratios = "- | -"
    if not ours.trouble and not theirs.trouble:
        memory = f"{theirs.peak_kib / ours.peak_kib:.1f}x" if ours.peak_kib >= SEEN_KIB else "-"
        ratios = f"{theirs.cpu_s / ours.cpu_s:.1f}x | {memory}"
    name = source.name.removesuffix(".xplane.pb")
    return f"| {name} | {events:,} | {size / 1e6:.1f} MB | {ours.cells()} | {theirs.cells()} | {ratios} |"


def main() -> int:
    """Measure, print, perhaps write the page."""
    parser = argparse.ArgumentParser(description="our reader of op traces beside xprof's")
    parser.add_argument("--xprof", required=True, help="Python of an environment with xprof (pip install xprof)")
    parser.add_argument("--source", type=Path, nargs="+", default=list(SOURCES), help="real xplane.pb files")
    parser.add_argument("--events", type=int, nargs="+", default=[30_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the large files go while they are needed")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    lines = [
        "| capture | events | size | ours: CPU | memory | found | xprof: CPU | memory | found | CPU | memory |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = Path(folder) / "copies.xplane.pb"
        for source in options.source:
            for wanted in options.events:
                if wanted > LARGE and source != options.source[0]:
                    continue
                events = _xspace_copies.write(source, file, _xspace_copies.copies_for(source, wanted))
                ours, theirs = measured(options.xprof, file, options.rounds)
                lines.append(row(source, events, file.stat().st_size, ours, theirs))
                print(lines[-1], flush=True)
                loads.append(os.getloadavg()[0])
    load = f"The machine's load average meanwhile: {min(loads):.0f} to {max(loads):.0f}, on {os.cpu_count()} CPUs."
    print(f"\n{load}")
    if options.write:
        PAGE.write_text(HEAD.format(rounds=options.rounds) + "\n".join([*lines, "", load]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
