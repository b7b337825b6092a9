"""CPU contention: is the cost that CFG001 states true, and does its interval contain the truth?

Usage: contention.py [--rounds 3] [--only PROGRAM] [--write]

Each program of bench/programs/contention runs alone and beside one busy loop for each CPU, in turn, without
stepscope: that is the truth. After each pair it runs once more beside the loops under ``stepscope run``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import msgspec

from stepscope.model.report.report import Report
from stepscope.tables.findings import Cost

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs" / "contention"
PAGE = ROOT / "docs" / "benchmarks" / "contention.md"
CODE = "CFG001"
SIZES = {"keras_fit": 20, "small_ops": 2000, "python_loop": 6000, "lstm": 20}
NOTES = "## Notes"
"""Heading below which the text is written by hand and kept."""
HEAD = """# CPU contention: is the stated share the truth?

Printed by `make bench-contention ARGS=--write`. Each program ran alone and beside one busy loop for each CPU, in turn
and without stepscope: *true* is the share of its time that the loops cost, of medians, and in brackets of each pair.
*Said*: by CFG001, of runs beside the loops, with the interval that it states.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Measurements of one program."""

    name: str
    alone: list[float] = field(default_factory=list)
    """Seconds of each run alone."""
    beside: list[float] = field(default_factory=list)
    said: list[Cost | None] = field(default_factory=list)

    @property
    def true(self) -> float:
        """Share of the time that the neighbours cost."""
        return 1.0 - median(self.alone) / median(self.beside)

    def row(self) -> str:
        """Row of the table."""
        pairs = ", ".join(f"{100 * (1 - a / b):.0f}" for a, b in zip(self.alone, self.beside, strict=True))
        said = [c for c in self.said if c is not None]
        texts = "; ".join(f"{100 * c.ratio:.0f} ({100 * c.low:.0f}-{100 * c.high:.0f})" for c in said) or "nothing"
        held = sum(c.low <= self.true <= c.high for c in said)
        return f"| {self.name} | {100 * self.true:.0f} ({pairs}) | {texts} | {held} of {len(self.said)} |"


def main(args: list[str] | None = None) -> int:
    """Run, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(SIZES))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(args)
    lines = [
        "| program | true, % (of each pair) | said, % (interval) | interval holds the truth |",
        "|---|---|---|---|",
    ]
    for name in [asked.only] if asked.only else SIZES:
        compared = Compared(name=name)
        for _ in range(asked.rounds):
            _round(compared)
        lines.append(compared.row())
        print(lines[-1], flush=True)
    if asked.write:
        said = PAGE.read_text(encoding="utf-8").partition(NOTES)[2] if PAGE.is_file() else "\n"
        PAGE.write_text(HEAD + "\n".join(lines) + f"\n\n{NOTES}{said}", encoding="utf-8")
    return 0


def _round(compared: Compared) -> None:
    command = [sys.executable, f"{compared.name}.py", str(SIZES[compared.name])]
    compared.alone.append(_seconds(command))
    with neighbours():
        compared.beside.append(_seconds(command))
    with tempfile.TemporaryDirectory() as folder, neighbours():
        report = Path(folder) / "report.json"
        stepscope = [sys.executable, "-m", "stepscope", "run", "-q", "--session", f"{folder}/it.stepscope"]
        _seconds([*stepscope, "--report-json", str(report), "--", *command])
        found = msgspec.json.decode(report.read_bytes(), type=Report).findings
    compared.said.append(next((f.cost for f in found if f.code == CODE), None))


def _seconds(command: list[str]) -> float:
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=PROGRAMS, env=env, stdout=subprocess.PIPE, check=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"seconds"')]
    return float(json.loads(lines[-1])["seconds"])


@contextmanager
def neighbours() -> Iterator[None]:
    """One busy loop for each CPU."""
    loops = [subprocess.Popen([sys.executable, "burn.py"], cwd=PROGRAMS) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    raise SystemExit(main())
