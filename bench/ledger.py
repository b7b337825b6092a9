"""Is the time of a job accounted for? Runs programs under stepscope and prints the parts of their ledgers.

Usage: ledger.py [PROGRAM ...] [--sessions FOLDER] [--limit S] [--write]

A program is a case of bench/cases ("07-blocking-checkpoint/slow") or a path. Without any, the programs of ``DEFAULT``
run, which differ in style: fit, loops written by hand, sessions, eager code, predictions, several fits. ``--sessions``:
only read the sessions of a folder. The page docs/benchmarks/ledger.md is written by ``--write``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import _left_behind
from stepscope.model.report.ledger import PHASES, LedgerEntry
from stepscope.model.report.report import Report
from stepscope.report.ledger_rows import PHASES as WORDS
from stepscope.sessions import analysis

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "bench" / "cases"
PAGE = ROOT / "docs" / "benchmarks" / "ledger.md"
GOAL_RATIO, GOAL_SHARE = 0.05, 0.95
"""Largest share of the wall time that is not seen, in this share of all sessions (issue 21)."""
DEFAULT = (
    "04-python-before-step/slow",
    "07-blocking-checkpoint/slow",
    "13-function-made-in-loop/slow",
    "14-eager-loop/slow",
    "16-checkpoint-every-few-batches/slow",
    "18-session-feed-loop/slow",
    "19-decode-every-epoch/slow",
    "21-saved-model-per-file/slow",
    "22-predict-batch-of-one/slow",
    "36-validation-of-single-rows/slow",
    "40-gan-run-eagerly/slow",
    "41-model-loaded-per-request/slow",
    "42-mining-every-k-steps/slow",
    "52-clean-fit-tf-data/clean",
    "53-clean-custom-loop/clean",
    "55-clean-session/clean",
    "56-clean-inference/clean",
    "57-clean-long-first-step/clean",
    "58-clean-fit-validation/clean",
    "61-clean-checkpoint-per-epoch/clean",
    "63-clean-scores-per-epoch/clean",
    "68-clean-gan-two-functions/clean",
    "69-clean-ppo-vector-environment/clean",
)
HEAD = """# Is the time of a job accounted for?

Printed by `make bench-ledger ARGS=--write`: the job's ledger ([decision 0041](../decisions/0041-ledger.md)) of programs
that differ in style. Shares of the wall time in percent; *counted*: the part that lies in gaps of the duty cycle, where
steps were counted and observed ones stand for them; *sum*: of all parts, which are measured independently, above 100 if
two claim the same time. A job that was stopped counts, too: its ledger ends with its records.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The job's ledger of one program."""

    name: str
    wall_s: float
    shares: dict[str, float]
    """Share of the wall time by phase."""
    counted: float

    @property
    def unseen(self) -> float:
        """Share that was not seen."""
        return self.shares.get("not-seen", 0.0)

    @property
    def whole(self) -> float:
        """All shares together."""
        return sum(self.shares.values())


def row_of(name: str, report: Report) -> Row | None:
    """The row of a report; None without a ledger."""
    entries = [entry for entry in report.ledger if entry.maker is None]
    if not entries:
        return None
    shares: dict[str, float] = {}
    for entry in entries:
        shares[entry.phase] = shares.get(entry.phase, 0.0) + entry.ratio
    return Row(name=name, wall_s=_wall_s(entries), shares=shares, counted=_counted(entries))


def _wall_s(entries: Sequence[LedgerEntry]) -> float:
    largest = max(entries, key=lambda entry: entry.ns)
    return largest.ns / largest.ratio / 1e9


def _counted(entries: Iterable[LedgerEntry]) -> float:
    return sum(entry.ratio * entry.unobserved_ratio for entry in entries)


def program_of(name: str) -> Path:
    """The file of a program."""
    path = Path(name)
    return path if path.is_file() else (CASES / name).with_suffix(".py")


def run(programs: Iterable[str], limit_s: float) -> Iterator[tuple[str, Report]]:
    """Run each program under stepscope, in its own folder."""
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(programs):
            program, session = program_of(name).resolve(), Path(folder) / f"{number}.stepscope"
            command = [sys.executable, "-m", "stepscope", "run", "--session", str(session), "-q", program.name]
            try:
                subprocess.run(
                    command,
                    cwd=program.parent,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"},
                    capture_output=True,
                    timeout=limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                print(f"{name}: stopped after {limit_s:.0f} s", file=sys.stderr)
                continue
            yield name, analysis.analyze(session)


def read(folder: Path) -> Iterator[tuple[str, Report]]:
    """The reports of all sessions of a folder."""
    for session in sorted(folder.glob("*.stepscope")):
        yield session.stem, analysis.analyze(session)


def table(rows: Sequence[Row]) -> str:
    """A line for each program."""
    phases = [phase for phase in PHASES if any(row.shares.get(phase) for row in rows)]
    head = ["program", "wall s", *(WORDS[phase][0] for phase in phases), "counted", "sum"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        shares = [_percent(row.shares.get(phase, 0.0)) for phase in phases]
        lines.append([row.name, f"{row.wall_s:.1f}", *shares, _percent(row.counted), f"{100 * row.whole:.1f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f}" if ratio > 0 else ""


def verdict(rows: Sequence[Row]) -> str:
    """How many sessions are accounted for."""
    good = sum(row.unseen <= GOAL_RATIO for row in rows)
    worst = max(rows, key=lambda row: row.unseen)
    over = max(rows, key=lambda row: row.whole)
    return (
        f"{good} of {len(rows)} sessions have at most {100 * GOAL_RATIO:.0f} % that was not seen (goal: "
        f"{100 * GOAL_SHARE:.0f} %); the most is {100 * worst.unseen:.1f} % ({worst.name}); the largest sum is "
        f"{100 * over.whole:.1f} % ({over.name})."
    )


@_left_behind.nothing_stays()
def main() -> None:
    """Print the ledgers, and write the page if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--sessions", type=Path, metavar="FOLDER")
    parser.add_argument("--limit", type=float, default=300.0, metavar="S")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    reports = read(options.sessions) if options.sessions else run(options.programs or DEFAULT, options.limit)
    rows = []
    for name, report in reports:
        row = row_of(name, report)
        print(f"{name}: " + (f"{100 * row.unseen:.1f} % not seen" if row else "no ledger"), file=sys.stderr, flush=True)
        rows += [row] if row else []
    if not rows:
        sys.exit("no session has a ledger")
    text = f"{verdict(rows)}\n\n{table(rows)}\n"
    print(text)
    if options.write:
        PAGE.write_text(f"{HEAD}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
