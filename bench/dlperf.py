"""Does stepscope tell the 58 problems that the FSE'22 study reproduced?

Runs the pairs of bench/dlperf under stepscope: of a pair that reproduces slow and fixed, of a row that is gone its slow
program alone, of which silence is expected. Rows that were never measured are left out. ``--seal`` writes the hashes of
the programs, before their first run. A stopped run continues where it was; results belong to one tree of ``src/``, and
the machine's load stands with each row. ``--write`` writes docs/benchmarks/study.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import _judge
import judge_strangers
from judge_strangers import MARKS, OLD_PYTHON, ROOT, Row

PAIRS = ROOT / "bench" / "dlperf"
PAGE = ROOT / "docs" / "benchmarks" / "study.md"
THEN = {"TensorFlow's profiler": 2, "XLA": 4, "all approaches together": 17}
"""Of the 58, in 2022: helped. Source: FSE'22 study."""
CHECKS = ("top1", "place", "cost", "interval", "gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One row of the study."""

    row: Row
    load: float
    """Of the machine when its first program began."""


def judged(case: _judge.Case, keep: Path, timeout: float) -> Judged:
    """Run the programs of a row and judge them."""
    load = os.getloadavg()[0]
    python = str(OLD_PYTHON) if case.known["runs_on"] == ["2.15"] else sys.executable
    stepscope = [sys.executable, "-m", "stepscope", "run"]
    runs: dict[str, _judge.Ran] = {}
    for kind in ("slow",) if case.clean else ("slow", "fixed"):
        runs[kind] = ran = _judge.run(case, kind, stepscope, python, timeout)
        (keep / f"{case.name}.{kind}.json").write_text(json.dumps(ran.report, indent=1))
        (keep / f"{case.name}.{kind}.txt").write_text(ran.output)
    return Judged(row=judge_strangers.row_of(case, {"clean": runs["slow"]} if case.clean else runs), load=load)


def by_cpu_time(rows: Sequence[Row], known: Mapping[str, _judge.Case]) -> str:
    """How costs and intervals stand against the pairs' ratios in CPU time, and how wide the intervals are.

    The pairs were measured on a loaded machine, where the ratio on the wall is uncertain.
    """
    priced = [row for row in rows if row.checks.get("interval") is not None]
    costs = held = 0
    for row in priced:
        truth = 1 - 1 / known[row.case].known["measured"]["cpu_ratio"]
        low, high = row.ends or (0.0, 0.0)
        costs += abs((row.said or 0.0) - truth) <= _judge.COST_SLACK * truth
        held += low <= truth <= high
    width = statistics.median(row.ends[1] - row.ends[0] for row in priced if row.ends) if priced else 0.0
    return (
        f"Against the pairs' gain in CPU time (`cpu_ratio`): costs {costs} of {len(priced)}, intervals {held} of "
        f"{len(priced)}; their median width is {width:.2f}."
    )


def page(found: Sequence[Judged], known: Mapping[str, _judge.Case], left: int, name: str) -> str:
    """The page, without what was written by hand after it."""
    pairs = [one for one in found if not one.row.clean]
    gone = [one for one in found if one.row.clean]
    both = sum(bool(one.row.checks["top1"] and one.row.checks["place"]) for one in pairs)
    said = judge_strangers.shares([one.row for one in found])
    then = ", ".join(f"{tool} {number}" for tool, number in THEN.items())
    head = f"Printed by `make bench-dlperf ARGS=--write`; tree {name} of `src/`. Helped with of 58 in 2022: {then}."
    count = f"{len(pairs)} rows that reproduce, {len(gone)} that are gone, {left} not judged yet."
    lines = [
        *("# The study's 58 problems", "", head, ""),
        f"{count} Cause and place right at rank 1 in {both} of {len(pairs)}. {said}",
        *("", by_cpu_time([one.row for one in pairs], known), ""),
        f"| row | symptom | cause | on | {' | '.join(CHECKS)} | cost said [ends] (true) | load | first finding |",
        f"|---|---|---|---|{'---|' * (len(CHECKS) + 3)}",
    ]
    for one in pairs:
        case, row = known[one.row.case].known, one.row
        marks = " | ".join(MARKS[row.checks.get(check)] for check in CHECKS)
        cost = "-" if row.said is None else f"{row.said:.2f}"
        cost += f" [{row.ends[0]:.2f} to {row.ends[1]:.2f}]" if row.ends is not None else ""
        first = (row.error or row.first or "nothing above info").replace("|", "/")
        lines.append(
            f"| {row.case} | {case['symptom']} | {case['cause']} | {', '.join(case['runs_on'])} | {marks} "
            f"| {cost} ({row.truth:.2f}) | {one.load:.1f} | {first} |"
        )
    lines += ["", "| gone | why | findings above info |", "|---|---|---|"]
    for one in gone:
        alarms = (one.row.error or one.row.first or "none").replace("|", "/")
        lines.append(f"| {one.row.case} | {known[one.row.case].known['gone']} | {alarms} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what is not judged yet, print the page."""
    parser = argparse.ArgumentParser(description="the study's 58 problems")
    parser.add_argument("--seal", action="store_true", help="write the hashes of the programs, run nothing")
    parser.add_argument("--only", default="", help="parts of names, comma-separated")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds a program may take")
    parser.add_argument("--keep", type=Path, default=ROOT / ".dlperf", help="keeps reports and results here")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/study.md")
    options = parser.parse_args()
    hashes = PAIRS / "hashes.txt"
    if options.seal:
        hashes.write_text(judge_strangers.sealed(PAIRS))
        return 0
    if hashes.read_text() != judge_strangers.sealed(PAIRS):
        raise SystemExit("the programs of bench/dlperf are not those that were sealed")
    name = judge_strangers.tree()[:12]
    keep = options.keep / name
    keep.mkdir(parents=True, exist_ok=True)
    done = keep / "rows.json"
    stored = json.loads(done.read_text()) if done.exists() else []
    found = [Judged(row=Row(**one["row"]), load=one["load"]) for one in stored]
    known = {case.name: case for case in _judge.load(PAIRS) if "unverified" not in case.known}
    for case in known.values():
        asked = not options.only or any(part in case.name for part in options.only.split(","))
        if asked and all(one.row.case != case.name for one in found):
            found.append(judged(case, keep, options.timeout))
            row = found[-1].row
            print(f"{case.name}: {dict(row.checks)} {row.first or row.error}", file=sys.stderr, flush=True)
            done.write_text(json.dumps([asdict(one) for one in found], indent=1))
    found.sort(key=lambda one: one.row.case)
    text = page(found, known, len(known) - len(found), name)
    print(text)
    if options.write:
        after = PAGE.read_text().partition("\n## ") if PAGE.exists() else ("", "", "")
        PAGE.write_text(text + after[1] + after[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
