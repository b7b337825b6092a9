"""Changes over sessions: planted ones, groups without any, and real runs of a NumPy program.

``--plan`` computes what would be seen, from sessions without a change that are not used again, and writes it to the
page. ``--write`` keeps that part of the page and adds what was seen. ``--real FOLDER`` does both with real runs: it
stops after the runs of the plan, until it is called again; ``--write`` adds what FOLDER holds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median

import numpy as np
from tests.fleet import made_history
from tests.fleet.made_history import Planted

from stepscope.experiments import change_points
from stepscope.fleet import history
from stepscope.fleet.engine import Engine
from stepscope.fleet.questions import Asked
from stepscope.model.api.fleet import FleetAnswer
from stepscope.sessions.fleet.sending import Destination
from stepscope.use_cases.fleet import changes, judging, parts
from stepscope.use_cases.fleet.asking import Scope

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "fleet-changes.md"
PLANTED, REAL = "\n## Planted\n", "\n## Real runs\n"
AT = 60
CASES: dict[str, tuple[str, str, tuple[Planted, ...]]] = {
    "5 % of a step 20 % slower": ("augment", "rose", (Planted(AT, augment=1.2),)),
    "0.5 % of a step 6 % slower": ("log", "rose", (Planted(AT, log=1.06),)),
    "2.3 % of a step moves to another function": ("encode", "moved", (Planted(AT, encode=1 / 3, decode=3.0),)),
    "5 % of a step 20 % slower, undone after 20 sessions": ("augment", "went-away", (Planted(40, AT, augment=1.2),)),
    "one host of four 30 % slower throughout": ("", "", ()),
    "twice as many steps": ("", "", ()),
}
HEAD = """# Changes over many sessions

Printed by `make bench-fleet-changes`. Made-up sessions (seeded, by the writer of real parts): 100 of a job, each with
another number of steps (20,000 to 40,000), 86 ms of CPU time a step in nine functions, 3 % of noise that all functions
of a session share, 1 % of noise in each, samples at 40 Hz of CPU time, a start that each run has once. Changes begin at
session {at}.

## What would be seen

Computed from {groups} groups without a change (other seeds), before the planted ones were made: the smallest change
that is seen in nine of ten cases by `stepscope fleet changes`, were it the only one; medians.

| | share of the step | smallest change |
|---|---|---|
"""


PLANTED_HEAD = f"""{PLANTED}
Groups in which the planted change was named, and called what it is; those in which anything else was claimed; the size,
median, and how often its 99 % interval holds the true one; how far from the true session it was put at most.

| planted | groups | named | else claimed | size | interval holds | sessions off |
|---|---|---|---|---|---|---|
"""


def ask(folder: Path) -> FleetAnswer:
    """The answer."""
    return changes.changes(Scope(place=Destination(url=str(folder)), asked=Asked(limit=1000)), "function", "")


def smallest(folder: Path, runs: int) -> dict[str, tuple[float, float]]:
    """(share, smallest change in so many sessions) of each function, and of the step."""
    found = parts.find(Destination(url=str(folder)).open(), str(folder))
    with closing(Engine()) as engine:
        read = history.read_of("function")
        engine.load(found.paths(), read.kinds, read.columns)
        (job,) = history.histories(engine, Asked(), "function", change_points.MIN_RUNS)
    judged = judging.judged(job, "function", "")
    seen = {}
    for numbers in judged.numbers:
        sizes = judging.smallest(numbers, change_points.splits(runs), len(judged.chances))
        for at, what in enumerate(numbers.what):
            share = 1.0 if numbers.share is None else float(numbers.share[at].mean())
            seen[what.function or numbers.of] = (share, float(sizes[at]))
    return seen


def plan(groups: int) -> str:
    """The part of the page that is written before."""
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(groups):
        with tempfile.TemporaryDirectory() as name:
            made_history.write(Path(name), 10_000 + seed)
            for what, pair in smallest(Path(name), 100).items():
                found.setdefault(what, []).append(pair)
    return HEAD.format(at=AT, groups=groups) + table(found)


def table(found: dict[str, list[tuple[float, float]]]) -> str:
    """Rows, the largest share first."""
    rows = []
    for what, pairs in sorted(found.items(), key=lambda pair: -pair[1][0][0]):
        share, size = (median(pair[column] for pair in pairs) for column in (0, 1))
        name = {"step": "wall time of the step", "cpu": "CPU time of the step"}.get(what, f"`{what}`")
        rows.append(f"| {name} | {100 * share:.1f} % | {100 * size:.1f} % |\n")
    return "".join(rows)


def write(folder: Path, title: str, planted: tuple[Planted, ...], seed: int) -> None:
    """A group of a case."""
    host = 1.3 if "host" in title else 1.0
    made_history.write(folder, seed, *planted, slow_host=host, more_steps_from=AT if "many steps" in title else None)


def planted(groups: int, equal: int) -> tuple[str, int]:
    """What was seen; the number of groups without a change that have a claim."""
    lines = [PLANTED_HEAD]
    for title, (function, kind, what) in CASES.items():
        named = wrong = holds = off = 0
        sizes = []
        for seed in range(groups):
            with tempfile.TemporaryDirectory() as name:
                write(Path(name), title, what, 1000 + seed)
                answer = ask(Path(name))
            right = [one for one in answer.changes if function and one.function == function and one.kind == kind]
            named += len(right)
            wrong += len(answer.changes) > len(right)
            for one in right:
                true = what[0].factors[function]
                sizes.append(one.ratio or 0.0)
                holds += (one.low or 0.0) <= true <= (one.high or 0.0)
                off = max(off, abs(int(one.session[-3:]) - what[0].begin))
        rest = f"{100 * median(sizes) - 100:+.1f} % | {holds} of {named} | {off}" if sizes else "- | - | -"
        lines.append(f"| {title} | {groups} | {named if function else '-'} | {wrong} | {rest} |\n")
        print(lines[-1], end="", flush=True)
    claims = []
    for seed in range(equal):
        with tempfile.TemporaryDirectory() as name:
            made_history.write(Path(name), 5000 + seed)
            claims.append(len(ask(Path(name)).changes))
    some = int(np.count_nonzero(claims))
    lines.append(
        f"\nOf {equal} groups without a change {some} have a claim, {sum(claims)} in all, at the 1 % level "
        "(aim: at most 4 of 100).\n"
    )
    return "".join(lines), some


PROGRAM = """
import sys
import numpy as np
import stepscope

BATCH = np.random.default_rng(0).random((160, 400))
SLOW = sys.argv[2] == "after"


def work(turns):
    total = 0.0
    for _ in range(turns):
        total += float((BATCH * BATCH).sum())
    return total


def forward():
    return work(60)


def load():
    return work(20)


def augment():
    return work(24 if SLOW else 15)


def encode():
    return work(2 if SLOW else 10)


def decode():
    return work(10 if SLOW else 2)


for _ in range(int(sys.argv[1])):
    forward()
    load()
    augment()
    encode()
    decode()
    stepscope.step()
"""
PILOT, SIDE = 10, 25


def real(folder: Path, steps: int) -> None:
    """Runs of the plan if there are none, else those before and after the change."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(PROGRAM)
    asked = [("plan", "before", PILOT)] if not (folder / "plan").exists() else []
    asked = asked or [("parts", "before", SIDE), ("parts", "after", SIDE)]
    for place, side, runs in asked:
        for number in range(runs):
            more = steps + 7 * (number % 5)
            command = [sys.executable, "-m", "stepscope", "run", "--fleet", place, "train.py", str(more), side]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            print(place, side, number, done.stderr.splitlines()[-1], flush=True)


def real_plan(folder: Path) -> str:
    """What would be seen in the runs that follow, by the pilot's variation."""
    pairs = {what: [pair] for what, pair in smallest(folder / "plan", 2 * SIDE).items()}
    head = (
        f"{REAL}\nA NumPy program with five functions and `stepscope.step()`, some seconds long, on a busy machine of "
        f"2 CPUs; {PILOT} runs without a change say what would be seen in {2 * SIDE}, half of them after two changes: "
        "`augment` does 60 % more, and 8 of the 10 parts of `encode` go to `decode`.\n\n"
        "| | share | smallest change |\n|---|---|---|\n"
    )
    return head + table(pairs)


def percent(ratio: float | None) -> str:
    """A ratio as a change."""
    return "-" if ratio is None else f"{100 * ratio - 100:+.0f} %"


def real_found(folder: Path) -> str:
    """What was seen."""
    answer = ask(folder / "parts")
    rows = "".join(
        f"| {one.function or one.of}{' -> ' + one.to if one.to else ''} | {one.kind} | "
        f"{percent(one.ratio)} ({percent(one.low)} to {percent(one.high)}) | "
        f"{one.sessions_before}, {one.sessions_after} |\n"
        for one in answer.changes
    )
    return f"\nSeen:\n\n| | | size | sessions before, after |\n|---|---|---|---|\n{rows}"


def main() -> int:
    """Plan, measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--equal", type=int, default=100)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--real", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if asked.plan:
        PAGE.write_text(plan(asked.groups))
        return 0
    if asked.real and not asked.write:
        real(asked.real, asked.steps)
        if not (asked.real / "parts").exists():
            PAGE.write_text(PAGE.read_text() + real_plan(asked.real))
        return 0
    before, _, of_real = PAGE.read_text().partition(REAL)
    found, some = planted(asked.groups, asked.equal) if not asked.real else ("", 0)
    print(found)
    if asked.real:
        PAGE.write_text(before + REAL + of_real + real_found(asked.real))
    elif asked.write:
        PAGE.write_text(before.partition(PLANTED)[0] + found + (REAL + of_real if of_real else ""))
    return 1 if some > 4 * asked.equal / 100 else 0


if __name__ == "__main__":
    sys.exit(main())
