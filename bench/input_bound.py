"""Does the model of the input say what the best of a grid reaches, and does its diff reach it?

Programs with a badly made input (``--programs``: bench/programs/input_bound, or ten by a stranger in
input_bound_by_strangers). Each runs once under stepscope, whose report says a rate at best and a diff. Then one process
measures, in turn, the pipeline as it is, a grid of others, and the one with the diff. Predicted: the rate as it is,
measured there, times the report's gain. On a machine with other work, rates are per second of CPU time of the process,
except where the input or the step waits for something else.

Asked of each: the prediction is within 15 % of the grid's best, and the diff reaches 90 % of that.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs" / "input_bound"
HARNESS = "harness.py"
ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(PROGRAMS)}
"""Of the programs: those of every folder find the harness."""
WAITS = "device_s="
"""Argument of a program whose step waits for a device: its rate is that of wall time."""
NEAR, REACHED = 0.15, 0.9
MARKS = {True: "yes", False: "NO"}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the report said. Rates in samples a second."""

    now: float
    best: float
    binds: str
    edits: tuple[str, ...]
    diff: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one pipeline: samples a second of wall time and of CPU time, and the load meanwhile."""

    point: str
    wall: float
    cpu: float
    load: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One program, as one line of the file of results."""

    name: str
    said: Said
    measured: tuple[Measured, ...]
    waits: bool = False
    """Whether its step waits for a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One program: medians over the rounds."""

    result: Result

    def rates(self) -> dict[str, float]:
        """Rate of each pipeline."""
        by_point: dict[str, list[float]] = {}
        for one in self.result.measured:
            rate = one.wall if self.result.waits else one.cpu
            by_point.setdefault(one.point, []).append(rate)
        return {point: median(rates) for point, rates in by_point.items()}

    @property
    def predicted(self) -> float:
        """The report's gain, from the rate as it is."""
        return self.rates()["as it is"] * self.result.said.best / self.result.said.now

    @property
    def best(self) -> tuple[str, float]:
        """The grid's best."""
        grid = {point: rate for point, rate in self.rates().items() if point != "edited"}
        return max(grid.items(), key=lambda item: item[1])

    @property
    def near(self) -> bool:
        """Whether the prediction is right."""
        return abs(self.predicted / self.best[1] - 1) <= NEAR

    @property
    def reached(self) -> float:
        """Share of the grid's best that the diff reaches; 0 without a diff."""
        return self.rates().get("edited", 0.0) / self.best[1]

    def spread(self) -> str:
        """Rates of the best pipeline over the rounds."""
        rates = [m.wall if self.result.waits else m.cpu for m in self.result.measured if m.point == self.best[0]]
        return f"{min(rates):,.0f}-{max(rates):,.0f}"

    def line(self) -> str:
        """Line of the table."""
        point, best = self.best
        highest = f"{best:,.0f} ({self.spread()})"
        edited = self.rates().get("edited")
        loads = [one.load for one in self.result.measured]
        return (
            f"| {self.result.name} | {self.rates()['as it is']:,.0f} | {self.predicted:,.0f} | {highest} | {point} "
            f"| {self.predicted / best - 1:+.0%} | {MARKS[self.near]} | {f'{edited:,.0f}' if edited else 'no diff'} "
            f"| {self.reached:.0%} | {MARKS[self.reached >= REACHED]} | {'; '.join(self.result.said.edits)} "
            f"| {min(loads):.1f}-{max(loads):.1f} |"
        )


HEAD = (
    "| program | as it is | predicted | best of the grid | which | predicted / best | within 15 % | with the diff "
    "| of the best | 90 % | edits | load |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def programs_of(folder: Path) -> list[Path]:
    """The programs of a folder."""
    return sorted(path for path in folder.resolve().glob("*.py") if path.name != HARNESS)


def predict(program: Path, python: str, seconds: float, session: Path) -> Said | None:
    """What the report of one run says; None if it says nothing of the input. A session that is there is asked again."""
    if not session.exists():
        run = [sys.executable, "-m", "stepscope", "run", "--quiet", "--session", str(session), "--"]
        subprocess.run(
            [*run, python, program.name, "--seconds", str(seconds)],
            cwd=program.parent,
            env=ENVIRONMENT,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=900,
        )
    report = [sys.executable, "-m", "stepscope", "report", str(session), "--format", "json"]
    bound = json.loads(subprocess.run(report, check=True, stdout=subprocess.PIPE, text=True).stdout)["input_bound"]
    if bound is None:
        return None
    return Said(
        now=bound["now_per_s"],
        best=bound["best_per_s"],
        binds=bound["binds"],
        edits=tuple(edit["text"] for edit in bound["edits"]),
        diff=bound["diff"],
    )


def measure(program: Path, python: str, said: Said, seconds: float, rounds: int) -> tuple[Measured, ...]:
    """The grid, and the program with the diff, in one process."""
    with tempfile.TemporaryDirectory(prefix="stepscope-input-bound-") as scratch:
        arguments = ["--grid", "--seconds", str(seconds), "--rounds", str(rounds)]
        if said.diff:
            shutil.copy(program, scratch)
            subprocess.run(
                ["patch", "-p1"], cwd=scratch, input=said.diff, text=True, check=True, stdout=subprocess.DEVNULL
            )
            arguments += ["--edited", f"{scratch}/{program.name}"]
        done = subprocess.run(
            [python, program.name, *arguments],
            cwd=program.parent,
            env=ENVIRONMENT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=1800,
        )
    return tuple(msgspec.json.decode(line, type=Measured) for line in done.stdout.splitlines() if line.startswith("{"))


def load(path: Path) -> dict[str, Result]:
    """Results of earlier calls, by program."""
    if not path.exists():
        return {}
    found = [msgspec.json.decode(line, type=Result) for line in path.read_bytes().splitlines() if line]
    return {result.name: result for result in found}


def main() -> int:
    """Measure what is not measured yet, print the table."""
    parser = argparse.ArgumentParser(description="the input's bound against the best of a grid")
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="folder of the programs")
    parser.add_argument("--only", default="", help="programs, comma-separated")
    parser.add_argument("--results", type=Path, default=Path("input-bound.jsonl"), help="results; those in it are kept")
    parser.add_argument(
        "--sessions", type=Path, default=Path("input-bound"), help="sessions; those in it are read again"
    )
    parser.add_argument("--seconds", type=float, default=0.3, help="CPU time of one measurement")
    parser.add_argument("--run-seconds", type=float, default=4.0, help="CPU time of the run under stepscope")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    options = parser.parse_args()
    found = programs_of(options.programs)
    programs = [path for path in found if not options.only or path.stem in options.only.split(",")]
    known = load(options.results)
    print(HEAD, flush=True)
    rows = []
    for program in programs:
        name = program.stem
        session = options.sessions.resolve() / f"{name}.stepscope"
        said = predict(program, options.python, options.run_seconds, session)
        if said is None:
            print(f"| {name} | the report says nothing of the input |", flush=True)
            continue
        if name not in known or known[name].said.diff != said.diff:
            measured = measure(program, options.python, said, options.seconds, options.rounds)
            known[name] = Result(name=name, said=said, measured=measured, waits=WAITS in program.read_text())
            with options.results.open("ab") as file:
                file.write(msgspec.json.encode(known[name]) + b"\n")
        rows.append(Row(result=msgspec.structs.replace(known[name], said=said)))
        print(rows[-1].line(), flush=True)
    near, reached = sum(r.near for r in rows), sum(r.reached >= REACHED for r in rows)
    print(f"within 15 %: {near} of {len(rows)}; the diff reaches 90 %: {reached}")
    return 0 if sum(row.near and row.reached >= REACHED for row in rows) >= 0.8 * len(programs) else 1


if __name__ == "__main__":
    sys.exit(main())
