"""Does ``whatif`` find what would help? On the pairs of bench/cases, without options, beside the fix made by hand.

For each pair: the trial that is tried first, and whether it takes away at least half of the time that the fix takes
away; the best gain, and how far it is from the fix; ceilings that the fix beats. The fix is measured by ``--against
fixed.py``. What has been run is kept in ``--results`` for each state of ``src``, so that the benchmark may be stopped
and continued.
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
from stepscope.model.report.whatif import WhatIfReport, WhatIfResult

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "whatif.md"
RESULTS = ROOT / "build" / "whatif.jsonl"
TIMEOUT_S = 1800
REMOVED = 0.5
"""Share of the fix's saving that a trial must take away to have found the cause."""
CLOSE = 0.15
"""Difference of a gain from the fix, as a share of the fixed time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pair."""

    name: str
    suggested: WhatIfReport | None
    fix: WhatIfReport | None
    problem: str = ""

    @property
    def fix_ratio(self) -> float:
        """Time of the fixed program over that of the slow one; 1 if it was not measured."""
        return self.fix.results[0].ratio if self.fix is not None and self.fix.results[0].ns else 1.0

    @property
    def first(self) -> WhatIfResult | None:
        """The trial that was run first."""
        if self.suggested is None:
            return None
        names = [run.remedy for run in self.suggested.runs if run.remedy]
        found = {result.remedy: result for result in self.suggested.results}
        return found.get(names[0]) if names else None

    @property
    def removed(self) -> bool:
        """Whether the first trial takes away what the fix does, or half of it."""
        saved = 1 - self.fix_ratio
        return self.first is not None and saved > 0 and 1 - self.first.ratio >= REMOVED * saved

    @property
    def gain(self) -> WhatIfResult | None:
        """The best gain that is sure."""
        results = self.suggested.results if self.suggested is not None else ()
        return next((one for one in results if one.kind == "gain" and one.verdict == "faster"), None)

    @property
    def beaten(self) -> list[str]:
        """Ceilings that the fix beats by more than their interval, among those that find the cause."""
        results = self.suggested.results if self.suggested is not None else ()
        return [
            one.remedy for one in results if one.kind == "ceiling" and one.low > self.fix_ratio > 0 and one.ratio < 1
        ]


def tree() -> str:
    """The state of ``src``."""
    done = subprocess.run(["git", "rev-parse", "HEAD:src"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def run(words: list[str], program: Path) -> WhatIfReport | str:
    """One experiment; a string says why there is no result."""
    with tempfile.TemporaryDirectory(prefix="stepscope-whatif-") as folder:
        command = [
            sys.executable,
            "-m",
            "stepscope",
            "whatif",
            "--folder",
            f"{folder}/w",
            "--json",
            *words,
            str(program),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode or not done.stdout.startswith("{"):
        return (done.stderr.splitlines() or [done.stdout])[-1] if done.returncode else done.stdout.strip()
    return msgspec.json.decode(done.stdout, type=WhatIfReport)


def measured(case: _judge.Case, time: str) -> Row:
    """One pair."""
    slow, fixed = case.program("slow"), case.program("fixed")
    suggested, fix = run(["--time", time], slow), run(["--rounds", "3", "--against", str(fixed)], slow)
    problems = [one for one in (suggested, fix) if isinstance(one, str)]
    return Row(
        name=case.name,
        suggested=suggested if isinstance(suggested, WhatIfReport) else None,
        fix=fix if isinstance(fix, WhatIfReport) else None,
        problem="; ".join(problems),
    )


def table(rows: list[Row]) -> str:
    """The page's table and its sums."""
    lines = ["| pair | fixed takes | tried first | with it | finds it | best gain | with it | beaten ceilings |"]
    lines.append("|---|---:|---|---:|---|---|---:|---|")
    for row in rows:
        first, gain = row.first, row.gain
        cells = (
            row.name,
            f"{100 * row.fix_ratio:.0f} %",
            first.remedy.rpartition("/")[2] if first is not None else row.problem[:80] or "nothing",
            f"{100 * first.ratio:.0f} %" if first is not None else "",
            "yes" if row.removed else "no",
            gain.remedy if gain is not None else "",
            f"{100 * gain.ratio:.0f} %" if gain is not None else "",
            ", ".join(row.beaten),
        )
        lines.append(f"| {' | '.join(cells)} |")
    found = sum(row.removed for row in rows)
    gains = [row for row in rows if row.gain is not None]
    close = sum(abs(row.gain.ratio - row.fix_ratio) <= CLOSE * row.fix_ratio for row in gains if row.gain is not None)
    sums = f"{found} of {len(rows)} first trials find the cause; {close} of {len(gains)} gains agree with the fix."
    return "\n".join([sums, "", *lines, ""])


def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="numbers or names of pairs")
    parser.add_argument("--time", default="4m", help="of each experiment without options")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    state, rows = tree(), list[Row]()
    known = [json.loads(line) for line in wanted.results.read_text().splitlines()] if wanted.results.exists() else []
    done = {one["name"]: one["row"] for one in known if one["tree"] == state}
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    for case in _judge.load(ROOT / "bench" / "cases"):
        chosen = not wanted.only or any(case.name.startswith(name) for name in wanted.only)
        if case.clean or not chosen or case.program("slow").suffix != ".py":
            continue
        if case.name in done:
            rows.append(msgspec.convert(done[case.name], Row))
            continue
        rows.append(measured(case, wanted.time))
        with wanted.results.open("a") as stream:
            line = {"tree": state, "name": case.name, "row": msgspec.to_builtins(rows[-1])}
            stream.write(json.dumps(line) + "\n")
        print(table(rows[-1:]), file=sys.stderr, flush=True)
    print(table(rows))
    if wanted.write:
        before = PAGE.read_text("utf-8").partition("<!-- figures -->")[0]
        PAGE.write_text(f"{before}<!-- figures -->\n\n{table(rows)}", "utf-8")


if __name__ == "__main__":
    main()
