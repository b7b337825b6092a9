"""What does the checker say of public trees, and what does it cost, beside an earlier build of it?

Each folder below --trees is a project. Both builds check it in fresh processes without a cache, in turn, --runs times;
the time is CPU time of all processes, by the kernel.

Usage: check_trees.py --trees FOLDER --before SRC [--runs N] [--write]
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from _stats import Interval, bootstrap

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "check-trees.md"
BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
SEVERITIES = ("error", "warning", "info")


def checked(source: Path, tree: Path, *options: str) -> tuple[Counter[str], float]:
    """Findings of a tree by severity, and the CPU seconds that the check took with what it started."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        command = ["-m", "stepscope", "check", ".", "--no-cache", "--format", "json", "-o", str(out), *options]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "PYTHONPATH": str(source)}
        done = subprocess.run(
            [sys.executable, *command], cwd=tree, env=environment, check=False, capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{tree.name}: exit code {done.returncode}: {done.stderr.strip()}")
        report = json.loads(out.read_text())
    found = Counter(finding["severity"] for finding in report["findings"])
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(trees: list[Path], before: Path, runs: int) -> tuple[list[str], list[float]]:
    """A row of the table for each tree, and the ratios of CPU time of all trees, now over before, one of each run."""
    rows = []
    ratios = [[0.0, 0.0] for _ in range(runs)]
    for tree in trees:
        counts: list[Counter[str]] = []
        for run in range(runs):
            sides = [checked(before, tree), checked(ROOT / "src", tree, "--show-info")]
            for side, (found, seconds) in enumerate(sides):
                ratios[run][side] += seconds
                counts.append(found)
        cells = [f"{old[s]} → {new[s]}" for old, new in [counts[:2]] for s in SEVERITIES]
        rows.append(f"| {tree.name} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    return rows, [after / first for first, after in ratios]


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--before", type=Path, required=True, help="src of the earlier build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    trees = sorted(path for path in options.trees.iterdir() if path.is_dir())
    for source in (options.before, ROOT / "src"):  # else one side may compile its modules in each run
        compileall.compile_dir(source, quiet=2)
    rows, ratios = compared(trees, options.before.resolve(), options.runs)
    interval: Interval = bootstrap(ratios)
    ratio = f"{interval.value:.2f} (95 % interval {interval.low:.2f} to {interval.high:.2f})"
    cost = f"CPU time of all trees, now over before, {options.runs} runs in turn: {ratio}."
    table = ["| tree | errors | warnings | infos |", "|---|---|---|---|", *rows, "", cost]
    text = "\n".join(table) + "\n"
    print(text)
    if options.write:
        old = PAGE.read_text()
        PAGE.write_text(old[: old.index(BEGIN) + len(BEGIN)] + text + old[old.index(END) :])


if __name__ == "__main__":
    main()
