"""How often does a short job have its first look, and what does that cost a job of ten seconds?

Two parts. *Looks*: jobs with three seconds of steps under ``stepscope run``; a look counts if the report has an op
trace with steps and its table of ops has lines. *Cost*: a job of a fixed number of steps, some ten seconds of them,
plain and under ``run`` in turn: the mean step of the steady part, and the job's whole wall time from its own first line
on, each as the ratio of a pair. ``--without`` adds runs with ``--budget 0%`` to the pairs, which shows the look's part.

What has been run is kept in ``--results`` and not run again, so that the benchmark may be stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import _left_behind
from _stats import bootstrap

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "first-look.md"
RESULTS = ROOT / "build" / "first-look.jsonl"
JOB = str(ROOT / "bench" / "programs" / "short_job.py")
KINDS = ("fit", "loop", "session")
LONG_S = 10.0
SHORT_S = 3.0
TIMEOUT_S = 600
PLAIN, RUN, WITHOUT = "plain", "run", "without"
LOOKS_NOTE = """Jobs with three seconds of steps. *With op trace and lines*: the report has an op trace of the job's
steps, and at least one op of its table has a line of the program or a layer."""
COST_NOTE = """Jobs with some ten seconds of steps, in turn. Median ratio of the pairs, with its bootstrap interval of
95 %. *Mean steady step*: all steps but the first ten, the traced ones included. *Wall time of the job*: from its first
line to its last, so without the interpreter's start and the report."""
Row = dict[str, object]


class Results:
    """Results so far, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, row: Row) -> None:
        """Keep one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        self.rows.append(row)

    def of(self, part: str, kind: str) -> list[Row]:
        """Those of one part and kind of job."""
        return [row for row in self.rows if (row["part"], row["kind"]) == (part, kind)]


def ran(kind: str, words: Iterable[str], options: Sequence[str] | None, folder: Path) -> tuple[Row, Path]:
    """(what the job printed, its session) of one run; ``options`` of ``stepscope run``, None: without it."""
    session = folder / "s.stepscope"
    job = [JOB, kind, *words]
    under = ["-m", "stepscope", "run", "--session", str(session), *(options or ())] if options is not None else []
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [sys.executable, *under, *job],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1]), session


def look(kind: str) -> Row:
    """One short job: what its report has."""
    with tempfile.TemporaryDirectory(prefix="stepscope-first-look-") as folder:
        said, session = ran(kind, ["--seconds", str(SHORT_S)], [], Path(folder))
        report = json.loads((session / "report.json").read_text())
    ops = report.get("ops") or {}
    lines = sum(bool(op["file"] or op["layer"]) for op in ops.get("ops", ()))
    captures = report["overhead"]["captures"]
    notes = [one["text"] for one in report["diagnostics"] if one["code"] == "DX118"]
    return {
        "part": "looks",
        "kind": kind,
        "step_ms": said["median_ms"],
        "steps": sum(one["steps"] for one in captures if one["asked_by"] == "first-look"),
        "cost_ns": sum(one["cost_ns"] for one in captures),
        "lines": lines,
        "good": bool(ops.get("steps")) and lines > 0,
        "notes": notes,
    }


def measured(kind: str, how: str, steps: int) -> Row:
    """One long job: its steps and its wall time."""
    options = {PLAIN: None, RUN: [], WITHOUT: ["--budget", "0%"]}[how]
    with tempfile.TemporaryDirectory(prefix="stepscope-first-look-") as folder:
        said, _ = ran(kind, ["--steps", str(steps)], options, Path(folder))
    return {"part": "cost", "kind": kind, "how": how, **said}


def take_looks(results: Results, kinds: Sequence[str], count: int) -> None:
    """Run short jobs, all kinds in turn."""
    for number in range(count):
        for kind in kinds:
            if len(results.of("looks", kind)) <= number:
                results.add(look(kind))
                print(results.rows[-1], file=sys.stderr, flush=True)


def take_pairs(results: Results, kinds: Sequence[str], pairs: int, ways: Sequence[str], seconds: float) -> None:
    """Run pairs of long jobs, all kinds and ways in turn; every other pair begins with the other way."""
    for number in range(pairs):
        for kind in kinds:
            steps = _steps(results, kind, seconds)
            for how in ways if number % 2 == 0 else ways[::-1]:
                have = [row for row in results.of("cost", kind) if row["how"] == how]
                if len(have) <= number:
                    results.add(measured(kind, how, steps))
                    print(results.rows[-1], file=sys.stderr, flush=True)


def _steps(results: Results, kind: str, seconds: float) -> int:
    """Steps of a job of so many seconds, by those of the first plain run of this kind."""
    known = results.of("size", kind)
    if not known:
        with tempfile.TemporaryDirectory(prefix="stepscope-first-look-") as folder:
            said, _ = ran(kind, ["--seconds", str(SHORT_S)], None, Path(folder))
        results.add({"part": "size", "kind": kind, "steps": int(seconds / (float(str(said["mean_ms"])) / 1e3))})
        known = results.of("size", kind)
    return int(str(known[0]["steps"]))


def looks_table(results: Results) -> list[str]:
    """The table of short jobs."""
    lines = ["| job | runs | with op trace and lines | steps traced | cost, median |", "|---|---|---|---|---|"]
    for kind in KINDS:
        rows = results.of("looks", kind)
        if rows:
            good = sum(bool(row["good"]) for row in rows)
            steps = sorted(int(str(row["steps"])) for row in rows)
            cost = sorted(float(str(row["cost_ns"])) for row in rows)[len(rows) // 2] / 1e6
            lines.append(f"| {kind} | {len(rows)} | {good} | {steps[0]} to {steps[-1]} | {cost:.0f} ms |")
    return lines


def cost_table(results: Results) -> list[str]:
    """The table of pairs."""
    lines = ["| job | against plain | pairs | mean steady step | wall time of the job |", "|---|---|---|---|---|"]
    for kind in KINDS:
        for how in (RUN, WITHOUT):
            step, wall = (_ratios(results, kind, how, field) for field in ("mean_ms", "wall_s"))
            if step:
                label = "run" if how == RUN else "run --budget 0%"
                lines.append(
                    f"| {kind} | {label} | {len(step)} | {bootstrap(step).percent()} | {bootstrap(wall).percent()} |"
                )
    return lines


def _ratios(results: Results, kind: str, how: str, field: str) -> list[float]:
    """Ratio, minus one, of each pair."""
    rows = results.of("cost", kind)
    plain, other = ([float(str(row[field])) for row in rows if row["how"] == one] for one in (PLAIN, how))
    return [b / a - 1 for a, b in zip(plain, other, strict=False)]


def page(results: Results) -> str:
    """The page of results."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    return "\n".join(
        [
            "# The first look",
            "",
            f"Printed by `make bench-first-look` on {os.cpu_count()} cores (load {load} at the end).",
            "",
            *looks_table(results),
            "",
            LOOKS_NOTE,
            "",
            *cost_table(results),
            "",
            COST_NOTE,
            "",
        ]
    )


@_left_behind.nothing_stays()
def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--looks", type=int, default=100, help="short jobs of each kind")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of long jobs of each kind")
    parser.add_argument("--seconds", type=float, default=LONG_S, help="steps of a long job")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--without", action="store_true", help="also run with --budget 0%%")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    results, kinds = Results(wanted.results), wanted.kinds.split(",")
    take_looks(results, kinds, wanted.looks)
    take_pairs(results, kinds, wanted.pairs, (PLAIN, RUN, *((WITHOUT,) if wanted.without else ())), wanted.seconds)
    text = page(results)
    print(text)
    if wanted.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
