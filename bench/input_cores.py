"""Does the input's model say what a machine with twice the cores brings?

Ten programs with a badly made input (bench/programs/input_bound). Each runs once under stepscope on one core; the
report has the rate on two (``input_bound.by_cores``). Then the program as it is consumes batches on one core and on
two, in turn, without stepscope. Asked: the gain that the report says is within 15 % of the measured one.

Rates are of wall time, so the machine must be quiet: programs whose measured rates on one core differ by more than a
quarter between rounds are marked and not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from input_bound import PROGRAMS, ROOT, programs_of

PAGE = ROOT / "docs" / "benchmarks" / "input-cores.md"
NEAR, UNSTEADY = 0.15, 1.25
ONE, TWO = "0", "0,1"
HEAD = (
    "| program | one core | two cores | measured | said | said / measured | within 15 % | binds on two |\n"
    "|---|---:|---:|---:|---:|---:|---|---|\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One program. Rates in samples a second."""

    name: str
    one: tuple[float, ...]
    two: tuple[float, ...]
    said: float
    """Gain of the second core, from the report."""
    binds: str

    @property
    def gain(self) -> float:
        """Measured."""
        return median(self.two) / median(self.one)

    @property
    def steady(self) -> bool:
        """Whether the machine was quiet enough."""
        return max(self.one) / min(self.one) <= UNSTEADY and max(self.two) / min(self.two) <= UNSTEADY

    @property
    def near(self) -> bool:
        """Whether the report is right."""
        return abs(self.said / self.gain - 1) <= NEAR

    def line(self) -> str:
        """Line of the table."""
        mark = ("yes" if self.near else "NO") if self.steady else "unsteady"
        return (
            f"| {self.name} | {median(self.one):,.0f} | {median(self.two):,.0f} | x{self.gain:.2f} | x{self.said:.2f} "
            f"| {self.said / self.gain:.2f} | {mark} | {self.binds} |\n"
        )


def said(name: str, python: str, seconds: float, folder: Path) -> tuple[float, str] | None:
    """(gain of the second core, what binds then) of a run on one core; None if the report has no model."""
    session = folder / f"{name}.stepscope"
    if not session.exists():
        run = [
            "taskset",
            "-c",
            ONE,
            sys.executable,
            "-m",
            "stepscope",
            "run",
            "--quiet",
            "--session",
            str(session),
            "--",
        ]
        _run([*run, python, f"{name}.py", "--seconds", str(seconds)])
    report = _run([sys.executable, "-m", "stepscope", "report", str(session), "--format", "json"])
    bound = json.loads(report)["input_bound"]
    rates = {one["cores"]: one for one in (bound or {}).get("by_cores", [])}
    if 1 not in rates:
        return None
    two = rates.get(2, rates[1])
    return two["now_per_s"] / rates[1]["now_per_s"], two["binds"]


def rate(name: str, python: str, cores: str, seconds: float) -> float:
    """Samples a second of wall time of the program alone."""
    out = _run(["taskset", "-c", cores, python, f"{name}.py", "--seconds", str(seconds)])
    return float(json.loads(out.splitlines()[-1])["wall"])


def _run(words: Sequence[str]) -> str:
    done = subprocess.run(
        words,
        cwd=PROGRAMS,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=900,
    )
    return done.stdout


def page(rows: Sequence[Row], load: tuple[float, float]) -> str:
    """The page."""
    counted = [row for row in rows if row.steady]
    return (
        "# Does the input's model say what more cores bring?\n\n"
        "Printed by `make bench-input-cores ARGS=--write`. Ten badly made inputs, as they are: the gain of a second "
        "core that the report of a run on one core says (`input_bound.by_cores`), and the measured one: medians of "
        "rounds in turn, samples per second of wall time, without stepscope.\n\n"
        f"Within 15 %: {sum(row.near for row in counted)} of {len(counted)}; {len(rows) - len(counted)} were unsteady. "
        f"Load {load[0]:.1f} before, {load[1]:.1f} at the end, of which the benchmark is a part.\n\n"
        + HEAD
        + "".join(row.line() for row in rows)
    )


def main() -> int:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description="the input's rate on two cores, by a run on one")
    parser.add_argument("--only", default="", help="programs, comma-separated")
    parser.add_argument("--sessions", type=Path, default=Path("input-cores"), help="those in it are read again")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU time of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/input-cores.md")
    options = parser.parse_args()
    options.sessions.mkdir(exist_ok=True)
    before = os.getloadavg()[0]
    print(HEAD, end="")
    rows = []
    for name in (
        path.stem for path in programs_of(PROGRAMS) if not options.only or path.stem in options.only.split(",")
    ):
        found = said(name, options.python, options.seconds, options.sessions.resolve())
        if found is None:
            print(f"| {name} | the report has no rates by cores |", flush=True)
            continue
        rates: dict[str, list[float]] = {ONE: [], TWO: []}
        for number in range(options.rounds):
            for cores in (ONE, TWO) if number % 2 == 0 else (TWO, ONE):
                rates[cores].append(rate(name, options.python, cores, options.seconds))
        rows.append(Row(name=name, one=tuple(rates[ONE]), two=tuple(rates[TWO]), said=found[0], binds=found[1]))
        print(rows[-1].line(), end="", flush=True)
    if options.write:
        PAGE.write_text(page(rows, (before, os.getloadavg()[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
