"""Is the input wait that stepscope states the true one?

Keras fit with inputs of known cost, with and without prefetch. The truth comes from the twin whose batches are ready:
what a step takes longer than the twin's is what it waits for its input. Beside it stands the known cost of the sleeps.
Asked of each: the wait is within 5 % of the truth or 1 % of the step, the components add up to the step within 2 %,
samples/s agrees within 2 % with what the program says, and a finding names the costly function's lines.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "programs" / "inputs.py"
PAGE = ROOT / "docs" / "benchmarks" / "input-truth.md"
COSTLY = {
    "numpy_function": "slow_numpy",
    "py_function": "slow_py",
    "generator": "slow_rows",
    "pydataset": "SlowBatches",
    "ops": "slow_ops",
}
"""Definition that a finding must point into, for each kind of input."""
MARKS = {True: "yes", False: "NO"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of input, measured. Seconds per step."""

    kind: str
    prefetch: bool
    step: float
    truth: float
    known: float
    said: float
    components: float
    """Sum of the components over the step's wall time."""
    rate: float
    """Ratio of the report's samples/s to the program's."""
    named: bool

    @property
    def right(self) -> bool:
        """Whether the wait is within 5 % of the truth or 1 % of the step."""
        return abs(self.said - self.truth) <= max(0.05 * self.truth, 0.01 * self.step)

    @property
    def good(self) -> bool:
        """Whether all requirements hold."""
        return self.right and abs(self.components - 1) <= 0.02 and abs(self.rate - 1) <= 0.02 and self.named

    def line(self) -> str:
        """Line of the table."""
        return (
            f"| {self.kind} | {'yes' if self.prefetch else 'no'} | {1000 * self.step:.2f} | {1000 * self.known:.2f} "
            f"| {1000 * self.truth:.2f} | {1000 * self.said:.2f} | {MARKS[self.right]} | {self.components:.3f} "
            f"| {self.rate:.3f} | {MARKS[self.named]} |"
        )


INTRODUCTION = """# Is the stated input wait the true one?

Printed by `make bench-input-truth ARGS=--write`. True wait: the step less the step of a twin whose batches are ready.
Right: within 5 % of the truth, or 1 % of the step. Two cores, TensorFlow 2.21, Keras 3.15.

Read with care: the stated wait is below the true one by 2 ms whatever the input costs. It is exact for the time inside
of GetNext; the twin's step never sleeps, while a step that has waited finds cold caches and sleeping threads and takes
2 ms longer for the same work. With waits of 20 ms instead of 50 that is 8 %, and no row is within 5 %.

"""
HEAD = (
    "| input | prefetch | step, ms | known sleep, ms | true wait, ms | stated wait, ms | right | components / step "
    "| samples/s / program's | line named |\n|---|---|---|---|---|---|---|---|---|---|"
)


def lines_of(name: str) -> range:
    """Lines of a top-level definition of the program."""
    lines = PROGRAM.read_text().splitlines()
    first = next(at for at, line in enumerate(lines, 1) if re.match(rf"(def|class) {name}\b", line))
    after = [at for at, line in enumerate(lines, 1) if at > first and line and not line[0].isspace()]
    return range(first, after[0])


def execute(python: str, arguments: list[str], *, measured: bool) -> tuple[Mapping[str, float], Mapping[str, Any]]:
    """Run the program; returns its output and the report (empty without stepscope)."""
    with tempfile.TemporaryDirectory(prefix="stepscope-truth-") as scratch:
        report = Path(scratch) / "report.json"
        run = [sys.executable, "-m", "stepscope", "run", "--quiet", "--report-json", str(report), "--"]
        done = subprocess.run(
            [*(run if measured else []), python, str(PROGRAM), *arguments],
            cwd=scratch,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
        )
        said: Mapping[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
        return said, json.loads(report.read_text()) if measured else {}


def measure(python: str, kind: str, *, prefetch: bool, steps: int) -> Row:
    """One row: the program under stepscope, and its twin without."""
    arguments = ["--input", kind, "--steps", str(steps), *(["--prefetch"] if prefetch else [])]
    said, report = execute(python, arguments, measured=True)
    twin, _ = execute(python, [*arguments, "--twin"], measured=False)
    step, ready = said["seconds"] / said["steps"], twin["seconds"] / twin["steps"]
    wait = sum(part["ns_per_step"] for part in report["anatomy"] if part["component"] == "input-wait") / 1e9
    total = sum(part["ns_per_step"] for part in report["anatomy"]) / report["session"]["step_times"]["mean_ns"]
    lines = lines_of(COSTLY[kind])
    places = [place for finding in report["findings"] for place in finding["where"]]
    return Row(
        kind=kind,
        prefetch=prefetch,
        step=step,
        truth=step - ready,
        known=said["known_s"] / said["steps"],
        said=wait,
        components=total,
        rate=(report["session"]["throughput"]["samples_per_s"] or 0.0) / (said["samples"] / said["seconds"]),
        named=any(place["line"] <= lines[-1] and (place["end_line"] or place["line"]) >= lines[0] for place in places),
    )


def main() -> int:
    """Measure every kind, print the table."""
    parser = argparse.ArgumentParser(description="input wait against inputs of known cost")
    parser.add_argument("--only", default="", help="kinds of input, comma-separated")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/input-truth.md")
    options = parser.parse_args()
    kinds = [kind for kind in COSTLY if not options.only or kind in options.only.split(",")]
    rows = []
    print(HEAD, flush=True)
    for kind in kinds:
        # Keras prefetches what a PyDataset gives, always
        for prefetch in (True,) if kind == "pydataset" else (False, True):
            rows.append(measure(options.python, kind, prefetch=prefetch, steps=options.steps))
            print(rows[-1].line(), flush=True)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(INTRODUCTION + HEAD + "\n" + "".join(row.line() + "\n" for row in rows))
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
