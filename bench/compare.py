"""Does ``stepscope compare --fail-over 5%`` fail a slow-down of 8 %, and how often a program that did not change?

Rounds of three runs under ``stepscope run``: a program, the same with 8 % more work a step, and the program again. The
order turns round every other time. A repeat is ten rounds; its two comparisons, planted and A/A, are
judged as the command judges ten sessions a side: by the mean step, else by the median step. What was run is kept in
``--results`` (times alone, no sessions) and not run again, so that the benchmark may be stopped and continued.

The budget is 0: nothing is captured, and no op is replayed after the job, which would take as long as the job.

Ten rounds are much for one answer. ``--draws`` also judges sets of ten rounds drawn from all of those recorded, which
shows the rates that few repeats cannot; such sets overlap, so their rates are less certain than their number says.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median, stdev

import _left_behind
from stepscope.experiments import statistics
from stepscope.use_cases.compare import outcome_of
from stepscope.use_cases.comparing import numbers
from stepscope.use_cases.comparing.differences import DECIDING

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "compare.md"
RESULTS = ROOT / "build" / "compare.jsonl"
JOB = str(ROOT / "bench" / "programs" / "compare_job.py")
LIMIT = 0.05
ROUNDS = 10
TIMEOUT_S = 600
SIDES = ("base", "planted", "same")
KINDS = {
    "products": (["--products", "25"], ["--products", "27"]),
    "wait": (
        ["--products", "2", "--width", "64", "--wait-ms", "50"],
        ["--products", "2", "--width", "64", "--wait-ms", "54.1"],
    ),
}
"""Arguments of the job, as it is and with 8 % more: computation, for a quiet machine; a wait, for a busy one."""
NOTE = f"""*Fails*, *passes*, *cannot tell*: answers of `--fail-over {100 * LIMIT:g}%` (exit codes 1, 0, 3) to {ROUNDS}
interleaved runs a side. *By the mean alone*: without the median step, which decides where a few long steps make the
mean undecided. *Claims*: a verdict other than undecided on either of the two, which for A/A is a false one. *Noise*:
standard deviation of the logarithms between runs of one program. Drawn sets overlap."""
Row = dict[str, object]


def measured(kind: str, side: str, seconds: float) -> tuple[float, float]:
    """Mean and median step of one run, ns."""
    words = KINDS[kind][side == "planted"]
    with tempfile.TemporaryDirectory(prefix="stepscope-compare-") as folder:
        session = Path(folder) / "s.stepscope"
        command = [sys.executable, "-m", "stepscope", "run", "--budget", "0", "--session", str(session), JOB, *words]
        subprocess.run(
            [*command, "--seconds", str(seconds)],
            cwd=folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return times(session)


def times(session: Path) -> tuple[float, float]:
    """Mean and median step of a session, as ``compare`` takes them."""
    found = numbers.of_path(session)
    if found.step_ns is None or found.durations is None:
        raise RuntimeError(f"{session}: no steps")
    return found.step_ns, float(median(found.durations))


def record(path: Path, kind: str, rounds: int, seconds: float) -> list[Row]:
    """All rows, after the missing runs were made."""
    rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    have = {(row["kind"], row["round"], row["side"]) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            if (kind, number, side) not in have:
                mean_ns, p50_ns = measured(kind, side, seconds)
                row: Row = {"kind": kind, "round": number, "side": side, "mean_ns": mean_ns, "p50_ns": p50_ns}
                with path.open("a") as stream:
                    stream.write(json.dumps(row) + "\n")
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[Row], kind: str) -> dict[str, dict[str, list[float]]]:
    """Times by side and field, for rounds that are complete, in order."""
    known = {(row["round"], row["side"]): row for row in rows if row["kind"] == kind}
    complete = [
        n for n in sorted({int(str(number)) for number, _ in known}) if all((n, side) in known for side in SIDES)
    ]
    return {
        side: {field: [float(str(known[n, side][field])) for n in complete] for field in ("mean_ns", "p50_ns")}
        for side in SIDES
    }


def judged(found: dict[str, dict[str, list[float]]], side: str, which: Sequence[int]) -> tuple[str, str, bool]:
    """(outcome, outcome by the mean alone, whether a change is claimed) of a comparison of some rounds."""
    mean, middle = (
        statistics.paired(
            [found["base"][field][n] for n in which], [found[side][field][n] for n in which], looks=DECIDING
        )
        for field in ("mean_ns", "p50_ns")
    )
    by_mean, by_median = outcome_of(mean, LIMIT), outcome_of(middle, LIMIT)
    claims = any(statistics.verdict(effect) in {"slower", "faster"} for effect in (mean, middle))
    return by_median if (by_mean, by_median) == ("cannot-tell", "slower") else by_mean, by_mean, claims


def lines_of(rows: Sequence[Row], kind: str, draws: int) -> list[str]:
    """The table of one kind of job."""
    found = table(rows, kind)
    count = len(found["base"]["mean_ns"])
    repeats = [list(range(first, first + ROUNDS)) for first in range(0, count - ROUNDS + 1, ROUNDS)]
    chance = random.Random(1)
    drawn = [sorted(chance.sample(range(count), ROUNDS)) for _ in range(draws)] if count > ROUNDS else []
    lines = [
        f"## {kind}: {count} rounds",
        "",
        noise(found),
        "",
        "| comparison | sets of rounds | fails | passes | cannot tell | fails by the mean alone | claims |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, sets in (("repeats", repeats), ("drawn", drawn)):
        for side in ("planted", "same"):
            answers = [judged(found, side, which) for which in sets]
            if answers:
                lines.append(row_of("planted 8 %" if side == "planted" else "A/A", title, answers))
    return [*lines, ""]


def row_of(name: str, title: str, answers: Sequence[tuple[str, str, bool]]) -> str:
    """One row of the table."""
    last, mean = Counter(one for one, _, _ in answers), Counter(one for _, one, _ in answers)
    claims = sum(claim for _, _, claim in answers)
    cells = [last["slower"], last["pass"], last["cannot-tell"], mean["slower"], claims]
    return f"| {name} | {len(answers)} {title} | {' | '.join(map(str, cells))} |"


def noise(found: dict[str, dict[str, list[float]]]) -> str:
    """How much runs of one program differ, and the planted change as it was measured."""
    logs = {field: [math.log(value) for value in found["base"][field]] for field in ("mean_ns", "p50_ns")}
    planted = median(b / a for a, b in zip(found["base"]["p50_ns"], found["planted"]["p50_ns"], strict=True))
    spread = {field: 100 * stdev(values) if len(values) > 1 else 0.0 for field, values in logs.items()}
    return (
        f"Noise of the mean step {spread['mean_ns']:.1f} %, of the median step {spread['p50_ns']:.1f} %; "
        f"the planted change, as the median of the rounds' median steps: {100 * (planted - 1):+.1f} %."
    )


def page(rows: Sequence[Row], draws: int) -> str:
    """The page of results."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    return "\n".join(
        [
            "# Compare",
            "",
            f"Printed by `make bench-compare` on {os.cpu_count()} cores (load {load} at the end).",
            "",
            *(line for kind in kinds for line in lines_of(rows, kind, draws)),
            NOTE,
            "",
        ]
    )


@_left_behind.nothing_stays()
def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=list(KINDS), default="products")
    parser.add_argument("--repeats", type=int, default=20, help=f"repeats of {ROUNDS} rounds")
    parser.add_argument("--seconds", type=float, default=5.0, help="steps of a run")
    parser.add_argument("--draws", type=int, default=1000, help="sets of rounds drawn from those recorded")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    rounds = 0 if wanted.report else ROUNDS * wanted.repeats
    text = page(record(wanted.results, wanted.kind, rounds, wanted.seconds), wanted.draws)
    print(text)
    if wanted.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
