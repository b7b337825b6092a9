"""Does the value trial find waste that lies in values, and claim nothing on clean programs?

For each program the run that ``stepscope whatif --try values`` begins with, and its claims, which are not timed. What
was expected stands on the page above the marker, and was written before the first run: a pair counts as found if one
is of an expected kind; lines were checked by eye. What has been run is kept in ``--results`` for each state of ``src``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

import _judge
from stepscope.model.report.whatif import WhatIfValues
from stepscope.sandbox import isolation
from stepscope.tables.errors import TargetError
from stepscope.use_cases.whatif import values
from stepscope.use_cases.whatif.runs import Runner

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "whatif-values.md"
RESULTS = ROOT / "build" / "whatif-values.jsonl"
MARK = "<!-- figures -->"
EXPECTED = {
    "24-a-run-for-each-fetch": ("repeated", "duplicate"),
    "28-padded-to-the-longest": ("padding",),
    "29-forward-again-for-accuracy": ("duplicate",),
    "35-one-hot-into-matmul": ("zeros",),
    "37-double-precision-features": ("wide-type", "batch-only"),
    "50-adam-on-large-table": ("zeros",),
    "71-gradient-per-variable": ("repeated", "duplicate"),
    "74-projection-each-word": ("repeated",),
    "75-frozen-encoder": ("batch-only",),
    "77-inverse-each-call": ("constant",),
}
"""Pairs, and the kinds of claims one of which says what is wrong with them."""
CLEAN = ("51", "52", "53", "54", "55", "56", "57", "58", "60", "61", "62", "63", "64", "65", "66", "67", "68", "69")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One program."""

    name: str
    values: WhatIfValues

    @property
    def expected(self) -> tuple[str, ...]:
        """Kinds of right claims; () for a clean program."""
        return EXPECTED.get(self.name, ())

    @property
    def is_found(self) -> bool:
        """Whether a claim says what is wrong."""
        return any(claim.kind in self.expected for claim in self.values.claims)

    def cells(self) -> tuple[str, ...]:
        """Columns of the table."""
        said = [
            f"{claim.kind} {100 * claim.ratio:.0f} % ({', '.join(_place(place.line) for place in claim.places[:2])})"
            for claim in self.values.claims
        ]
        clean = "not looked at" if self.values.note else "nothing claimed" if not said else "WRONG"
        result = ("yes" if self.is_found else "no") if self.expected else clean
        seconds = f"{self.values.wall_ns / 1e9:.0f} s"
        note = self.values.note[:80] or "nothing"
        return self.name, result, "; ".join(said) or note, str(self.values.tensors), seconds


def _place(line: int) -> str:
    return f"line {line}" if line else "no line"


def tree() -> str:
    """The state of ``src``."""
    done = subprocess.run(["git", "rev-parse", "HEAD:src"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def looked(case: _judge.Case) -> Row:
    """Run one program."""
    program = case.program("clean" if case.clean else "slow")
    with tempfile.TemporaryDirectory(prefix="stepscope-values-") as name:
        folder = Path(name)
        wanted = isolation.Isolation(keep=(folder,), network=False)
        runner = Runner(
            argv=(sys.executable, str(program)),
            other=(),
            folder=folder,
            seconds=0.0,
            isolation=None if isolation.problem(wanted) else wanted,
        )
        try:
            ran = runner.run(0, values.NAME, seconds=0.0)
        except TargetError as error:
            return Row(name=case.name, values=WhatIfValues(note=str(error)))
        return Row(name=case.name, values=values.seen(folder / ran.session, ran))


def table(rows: list[Row]) -> str:
    """The sums and the table."""
    pairs, clean = [row for row in rows if row.expected], [row for row in rows if not row.expected]
    found, wrong = sum(row.is_found for row in pairs), sum(bool(row.values.claims) for row in clean)
    seen = sum(not row.values.note for row in clean)
    lines = [f"Found: {found} of {len(pairs)} pairs. Clean programs with a claim: {wrong} of {seen} looked at.", ""]
    lines += [
        "| program | found | claims (share of the work by shapes, lines) | tensors | time |",
        "|---|---|---|---:|---:|",
    ]
    lines += [f"| {' | '.join(row.cells())} |" for row in rows]
    return "\n".join([*lines, ""])


def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="numbers or names of programs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    state, rows = tree(), list[Row]()
    known = [json.loads(line) for line in wanted.results.read_text().splitlines()] if wanted.results.exists() else []
    done = {one["name"]: one["row"] for one in known if one["tree"] == state}
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    for case in _judge.load(ROOT / "bench" / "cases"):
        listed = case.name in EXPECTED or case.name.startswith(CLEAN)
        if not listed or (wanted.only and not case.name.startswith(tuple(wanted.only))):
            continue
        if case.name in done:
            rows.append(msgspec.convert(done[case.name], Row))
            continue
        rows.append(looked(case))
        with wanted.results.open("a") as stream:
            line = {"tree": state, "name": case.name, "row": msgspec.to_builtins(rows[-1])}
            stream.write(json.dumps(line) + "\n")
        print(table(rows[-1:]), file=sys.stderr, flush=True)
    print(table(rows))
    if wanted.write:
        before = PAGE.read_text("utf-8").partition(MARK)[0]
        PAGE.write_text(f"{before}{MARK}\n\n{table(rows)}", "utf-8")


if __name__ == "__main__":
    main()
