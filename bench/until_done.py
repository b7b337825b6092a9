"""How near does ``whatif --until-done`` come to the fix made by hand, where a program has two or three causes?

For each pair of a folder: ``--until-done --allow-changed-results`` (the fixes change batch sizes and types, too) on
``slow.py``, then ``--against fixed.py``. The speed reached is the time of the fixed program over that of the program
with everything that was kept. What has been run is kept in ``--results`` for each state of ``src``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

import _judge
import _left_behind
import whatif
from stepscope.model.report.whatif import WhatIfNoise, WhatIfReport

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "until-done.md"
RESULTS = ROOT / "build" / "until-done.jsonl"
PROGRAMS = ROOT / "bench" / "strangers" / "programs" / "whatif-many"
REACHED = 0.9
"""Share of the hand-made speed that counts as reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pair."""

    name: str
    climbed: WhatIfReport | None
    fix: WhatIfReport | None
    problem: str
    seconds: float
    """What ``--until-done`` took."""

    @property
    def ratio(self) -> float:
        """Time with everything that was kept over time as it was; 1 if nothing was."""
        total = self.climbed.way.total if self.climbed is not None and self.climbed.way is not None else None
        return total.ratio if total is not None and total.ns else 1.0

    @property
    def fix_ratio(self) -> float:
        """Time of the fixed program over that of the slow one; 0 if it was not measured."""
        return self.fix.results[0].ratio if self.fix is not None and self.fix.results[0].ns else 0.0

    @property
    def speed(self) -> float:
        """Speed reached, as a share of the fixed program's."""
        return self.fix_ratio / self.ratio

    @property
    def noises(self) -> list[WhatIfNoise]:
        """Every comparison of an unchanged job with itself."""
        way = self.climbed.way if self.climbed is not None else None
        noises = [step.noise for step in way.steps] if way is not None else []
        noises.append(self.fix.noise if self.fix is not None else None)
        return [noise for noise in noises if noise is not None]


def measured(case: _judge.Case, wait: str) -> Row:
    """One pair."""
    began = time.monotonic()
    climbed = whatif.run(["--until-done", "--allow-changed-results", "--time", wait], case.program("slow"))
    seconds = time.monotonic() - began
    fix = whatif.run(["--rounds", "3", "--against", str(case.program("fixed"))], case.program("slow"))
    return Row(
        name=case.name,
        climbed=climbed if isinstance(climbed, WhatIfReport) else None,
        fix=fix if isinstance(fix, WhatIfReport) else None,
        problem="; ".join(one for one in (climbed, fix) if isinstance(one, str)),
        seconds=round(seconds),
    )


def table(rows: list[Row]) -> str:
    """The page's table and its sums."""
    noises = [noise for row in rows for noise in row.noises]
    claims = sum(not noise.low <= 1 <= noise.high for noise in noises)
    lines = [
        (
            f"{sum(row.speed >= REACHED for row in rows)} of {len(rows)} reach {100 * REACHED:.0f} % of the hand-made "
            f"speed; {claims} of {len(noises)} comparisons of a job with itself claim a difference."
        ),
        "",
        "| pair | fixed takes | with what was kept | speed reached | kept | stopped | s |",
        "|---|---:|---:|---:|---|---|---:|",
    ]
    for row in rows:
        way = row.climbed.way if row.climbed is not None else None
        cells = (
            row.name,
            f"{100 * row.fix_ratio:.1f} %",
            f"{100 * row.ratio:.1f} %",
            f"{100 * row.speed:.0f} %",
            ", ".join(way.kept) if way is not None else row.problem[:80],
            way.stop if way is not None else "",
            f"{row.seconds:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


@_left_behind.nothing_stays()
def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=PROGRAMS, help="folder of the pairs")
    parser.add_argument("--only", nargs="*", help="numbers or names of pairs")
    parser.add_argument("--time", default="6m", help="of each --until-done")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    state, rows = whatif.tree(), list[Row]()
    known = [json.loads(line) for line in wanted.results.read_text().splitlines()] if wanted.results.exists() else []
    done = {one["name"]: one["row"] for one in known if one["tree"] == state}
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    for case in _judge.load(wanted.cases.resolve()):
        if wanted.only and not any(case.name.startswith(name) for name in wanted.only):
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
