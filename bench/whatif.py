"""Does ``whatif`` find what would help? On the pairs of a folder, without options, beside the fix made by hand.

For each pair: the trial that is tried first, and whether it takes away at least half of the time that the fix takes
away; whether any trial does; the best gain, and how far it is from the fix; ceilings that the fix beats. The fix is
measured by ``--against fixed.py``, or taken from case.toml (``--known``). Clean programs must end without a gain.
Every experiment compares the unchanged job with itself: how often that claims a difference is counted. What has been
run is kept in ``--results`` for each state of ``src``, so that the benchmark may be stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

import _judge
import _left_behind
from stepscope.model.report.whatif import WhatIfReport, WhatIfResult

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "whatif.md"
RESULTS = ROOT / "build" / "whatif.jsonl"
TIMEOUT_S = 1800
REMOVED = 0.5
"""Share of the fix's saving that a trial must take away to have found the cause."""
CLOSE = 0.15
"""Difference of a gain from the fix, as a share of the fixed time."""
WORTH = 0.97
"""Ratio below which a gain is worth a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pair."""

    name: str
    suggested: WhatIfReport | None
    fix: WhatIfReport | None
    problem: str = ""
    clean: bool = False
    known_ratio: float = 0.0
    """Time of the fixed program over that of the slow one by case.toml; 0: it is measured."""
    seconds: float = 0.0
    """What the experiment without options took."""

    @property
    def fix_ratio(self) -> float:
        """Time of the fixed program over that of the slow one; 1 if it was not measured."""
        if self.known_ratio:
            return self.known_ratio
        return self.fix.results[0].ratio if self.fix is not None and self.fix.results[0].ns else 1.0

    @property
    def found(self) -> list[WhatIfResult]:
        """Trials that take away what the fix does, or half of it, the first one first."""
        results = self.suggested.results if self.suggested is not None else ()
        order = [run.remedy for run in self.suggested.runs] if self.suggested is not None else []
        able = [one for one in results if one.ns and 1 - one.ratio >= REMOVED * (1 - self.fix_ratio) > 0]
        return sorted(able, key=lambda one: order.index(one.remedy))

    @property
    def itself(self) -> list[bool]:
        """Whether the unchanged job was claimed to differ from itself, for each experiment with an interval."""
        noises = [one.noise for one in (self.suggested, self.fix) if one is not None]
        return [not noise.low <= 1 <= noise.high for noise in noises if noise is not None]

    @property
    def first(self) -> WhatIfResult | None:
        """The trial that was run first: the one that was expected to bring most."""
        if self.suggested is None:
            return None
        found = [one for one in self.suggested.results if one.verdict != "not-tried"]
        return max(found, key=lambda one: one.expected_ratio, default=None)

    @property
    def removed(self) -> bool:
        """Whether the first trial takes away what the fix does, or half of it."""
        return self.first is not None and self.first in self.found

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


def measured(case: _judge.Case, wait: str, *, known: bool) -> Row:
    """One pair, or a clean program."""
    began = time.monotonic()
    suggested = run(["--time", wait], case.program("clean" if case.clean else "slow"))
    seconds = time.monotonic() - began
    fix: WhatIfReport | str | None = None
    if not case.clean and not known:
        fix = run(["--rounds", "3", "--against", str(case.program("fixed"))], case.program("slow"))
    return Row(
        name=case.name,
        suggested=suggested if isinstance(suggested, WhatIfReport) else None,
        fix=fix if isinstance(fix, WhatIfReport) else None,
        problem="; ".join(one for one in (suggested, fix) if isinstance(one, str)),
        clean=case.clean,
        known_ratio=1 / case.known["measured"]["ratio"] if known and not case.clean else 0.0,
        seconds=round(seconds),
    )


def table(rows: list[Row]) -> str:
    """The page's tables and their sums."""
    pairs, clean = [row for row in rows if not row.clean], [row for row in rows if row.clean]
    return "\n".join([_sums(pairs, clean), "", *_pairs(pairs), *_clean(clean), ""])


def _pairs(rows: list[Row]) -> list[str]:
    lines = [
        "| pair | fixed takes | tried first | with it | finds it | by any | best gain | with it | beaten ceilings | s |"
    ]
    lines.append("|---|---:|---|---:|---|---|---|---:|---|---:|")
    for row in rows:
        first, gain = row.first, row.gain
        cells = (
            row.name,
            f"{100 * row.fix_ratio:.0f} %",
            _short(first.remedy) if first is not None else row.problem[:80] or "nothing",
            f"{100 * first.ratio:.0f} %" if first is not None and first.ns else "",
            "yes" if row.removed else "no",
            _short(row.found[0].remedy) if row.found else "no",
            gain.remedy if gain is not None else "",
            f"{100 * gain.ratio:.0f} %" if gain is not None else "",
            ", ".join(map(_short, row.beaten)),
            f"{row.seconds:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _clean(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    lines = ["", "| clean program | gains above 3 % | ceilings |", "|---|---|---|"]
    for row in rows:
        results = row.suggested.results if row.suggested is not None else ()
        gains = [f"{_short(one.remedy)} {100 * one.ratio:.0f} %" for one in results if _claims(one)]
        ceilings = [
            f"{_short(one.remedy)} {100 * one.ratio:.0f} %" for one in results if one.kind == "ceiling" and one.ns
        ]
        lines.append(f"| {row.name} | {', '.join(gains) or row.problem or 'none'} | {', '.join(ceilings)} |")
    return lines


def _claims(result: WhatIfResult) -> bool:
    return result.kind == "gain" and result.verdict == "faster" and result.ratio < WORTH


def _short(trial: str) -> str:
    """A trial without the folders of its argument."""
    name, colon, argument = trial.partition(":")
    return f"{name}{colon}{argument.rpartition('/')[2]}"


def _sums(pairs: list[Row], clean: list[Row]) -> str:
    gains = [row for row in pairs if row.gain is not None]
    close = sum(abs(row.gain.ratio - row.fix_ratio) <= CLOSE * row.fix_ratio for row in gains if row.gain is not None)
    itself = [claim for row in (*pairs, *clean) for claim in row.itself]
    parts = [
        (
            f"{sum(row.removed for row in pairs)} of {len(pairs)} first trials find the cause, "
            f"{sum(bool(row.found) for row in pairs)} any trial"
        ),
        f"{close} of {len(gains)} gains agree with the fix",
        f"{sum(bool(row.beaten) for row in pairs)} fixes beat a ceiling",
        f"{sum(itself)} of {len(itself)} comparisons of the unchanged job with itself claim a difference",
    ]
    if clean:
        claimed = sum(any(map(_claims, row.suggested.results)) for row in clean if row.suggested is not None)
        parts.append(f"{claimed} of {len(clean)} clean programs are said to gain")
    return "; ".join(parts) + "."


@_left_behind.nothing_stays()
def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=ROOT / "bench" / "cases", help="folder of the pairs")
    parser.add_argument("--only", nargs="*", help="numbers or names of pairs")
    parser.add_argument("--known", action="store_true", help="take the fix's gain from case.toml")
    parser.add_argument("--time", default="3m", help="of each experiment without options")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="random order: a part of it is a random sample")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    state, rows = tree(), list[Row]()
    known = [json.loads(line) for line in wanted.results.read_text().splitlines()] if wanted.results.exists() else []
    done = {one["name"]: one["row"] for one in known if one["tree"] == state}
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    cases = _judge.load(wanted.cases.resolve())
    if wanted.shuffle is not None:
        random.Random(wanted.shuffle).shuffle(cases)
    for case in cases:
        chosen = not wanted.only or any(case.name.startswith(name) for name in wanted.only)
        if not chosen or case.program("clean" if case.clean else "slow").suffix != ".py":
            continue
        if case.name in done:
            rows.append(msgspec.convert(done[case.name], Row))
            continue
        rows.append(measured(case, wanted.time, known=wanted.known))
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
