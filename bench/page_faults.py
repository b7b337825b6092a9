"""Steady page faults: does their stated share agree with perf's, is the cause named, and what does the remedy bring?

Usage: page_faults.py [--rounds 5] [--only RECIPE] [--write]

Of each recipe of bench/cases/page-faults the slow side is run under ``stepscope run`` while a perf of its own samples
the whole job. Both shares are of the CPU time of the steady steps, of the very same process. Then the remedy that the
finding names first is measured with ``stepscope whatif``, and the stacks of a run with it are compared with those of
the first (``stepscope flame diff``). Recipes without a slow side must give no such finding.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stepscope.derive.view import SessionView
from stepscope.model.report.report import Report
from stepscope.model.report.whatif import WhatIfReport
from stepscope.sessions.bundle import open_session
from stepscope.tables.findings import Finding
from stepscope.use_cases.flame import compare

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "bench" / "cases" / "page-faults"
PAGE = ROOT / "docs" / "benchmarks" / "page-faults.md"
CODE = "MEM002"
HZ = 199
START_S = 10.0
"""Seconds from the start of a run until its steps are steady."""
ENTRY = re.compile(r"\b(asm_)?exc_page_fault\b")
STAMP = re.compile(r"^\s*(?P<seconds>\d+)\.(?P<rest>\d+):", re.MULTILINE)
EXPORT = re.compile(r"^export (?P<name>\w+)=(?P<value>\S+)", re.MULTILINE)
PROGRAM = re.compile(r'^exec "\$PYTHON" (?P<program>\S+)', re.MULTILINE)
HEAD = """# Steady page faults: share, cause, and what the remedy brings

Printed by `make bench-page-faults ARGS=--write`. *perf*: share of the job's CPU samples below the kernel's page fault,
by a perf of its own at 199 Hz with chains of the kernel. *Stated*: of the finding, from native windows, and in brackets
from counters and the calibrated cost of a fault. All are of the steady steps of one process. *Brings*: what
`stepscope whatif` says of the first remedy that the finding names: time of a step, with its interval at 95 %. Last:
what `flame diff` says of all that stands on the kernel's page fault, between a run as it is and one with the remedy.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A folder of bench/cases/page-faults: its program, and the environment of one side."""

    name: str
    program: Path
    variables: dict[str, str]
    faulty: bool


def recipes() -> list[Recipe]:
    """All recipes, the faulty ones first."""
    found = []
    for folder in sorted(CASES.iterdir()):
        script = next((folder / name for name in ("slow.sh", "clean.sh") if (folder / name).is_file()), None)
        text = script.read_text("utf-8") if script else ""
        program = PROGRAM.search(text)
        found.append(
            Recipe(
                name=folder.name,
                program=folder / (program["program"] if program else "clean.py"),
                variables={match["name"]: match["value"] for match in EXPORT.finditer(text)},
                faulty=(folder / "slow.sh").is_file(),
            )
        )
    return sorted(found, key=lambda recipe: not recipe.faulty)


def stepscope(*words: str, variables: dict[str, str]) -> subprocess.Popen[str]:
    """Start stepscope in the recipe's environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "stepscope", *words],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def measured(recipe: Recipe, folder: Path) -> tuple[Report, float]:
    """The report of the recipe's program, and perf's share of page faults in its steady steps."""
    session, recording = folder / "as-it-is.stepscope", folder / "perf.data"
    words = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-g", "-k", "mono", "-o", str(recording), "--"]
    job = stepscope(
        "run",
        "-q",
        "--session",
        str(session),
        "--",
        *words,
        sys.executable,
        str(recipe.program),
        variables=recipe.variables,
    )
    said = job.communicate()[0]
    if job.returncode:
        raise SystemExit(f"{recipe.name}: {said}")
    return report_of(session), perfs_share(session, recording)


def report_of(session: Path) -> Report:
    """A session's report."""
    return msgspec.json.decode((session / "report.json").read_bytes(), type=Report)


def perfs_share(session: Path, recording: Path) -> float:
    """Share of the samples in steady steps that are below a page fault; nan if no steps were seen."""
    view = SessionView(open_session(session))
    if view.steps is None:
        return float("nan")
    origin = view.session.manifest.origin_monotonic_ns
    steady = view.steps.steady
    began, ended = origin + int(view.steps.starts[steady].min()), origin + int(view.steps.ends[steady].max())
    pid = view.steps.worker.info.pid
    text = subprocess.run(
        ["perf", "script", "-i", str(recording), "--pid", str(pid), "-F", "time,ip,sym", "--ns"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    inside = hit = 0
    for sample in text.split("\n\n"):
        stamp = STAMP.match(sample)
        if stamp and began <= int(stamp["seconds"]) * 10**9 + int(stamp["rest"].ljust(9, "0")[:9]) <= ended:
            inside += 1
            hit += bool(ENTRY.search(sample))
    return hit / inside if inside else float("nan")


def finding_of(report: Report) -> Finding | None:
    """The finding about page faults."""
    return next((finding for finding in report.findings if finding.code == CODE), None)


def value(finding: Finding, metric: str) -> float:
    """Value of a metric in the finding's evidence; nan if absent."""
    return next((one.value for one in finding.evidence if one.metric == metric), float("nan"))


def row(recipe: Recipe, rounds: int, folder: Path) -> str:
    """Row of a faulty recipe."""
    report, perfs = measured(recipe, folder)
    finding = finding_of(report)
    if finding is None:
        return f"| {recipe.name} | {perfs:.1%} | **no finding** | | | | |"
    first = "yes" if report.findings[0] is finding else f"no: {report.findings[0].code}"
    remedy = finding.remedies[0].id
    program = [sys.executable, str(recipe.program)]
    tried = folder / "whatif"
    words = ["--try", remedy, "--rounds", str(rounds), "--json", "--folder", str(tried), "--", *program]
    out = subprocess.run(
        [sys.executable, "-m", "stepscope", "whatif", *words],
        env={**os.environ, **recipe.variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (result,) = msgspec.json.decode(out, type=WhatIfReport).results
    change = f"{100 * (result.ratio - 1):+.1f} % ({100 * (result.low - 1):+.1f} to {100 * (result.high - 1):+.1f})"
    stated = f"{value(finding, 'sampled_fault_ratio'):.1%} ({value(finding, 'fault_ratio'):.1%})"
    gone = "gone" if CODE in result.gone else "**still found**"
    after = with_stacks(recipe, remedy, folder / "after.stepscope")
    cells = (recipe.name, f"{perfs:.1%}", stated, first, finding.title, remedy, f"{change}, {gone}")
    return f"| {' | '.join(cells)} | {tower(folder / 'as-it-is.stepscope', after)} |"


def with_stacks(recipe: Recipe, remedy: str, session: Path) -> Path:
    """Run with a remedy and sample its native stacks: without a problem they are not sampled automatically."""
    words = ["run", "-q", "--session", str(session), "--apply", remedy, "--", sys.executable, str(recipe.program)]
    job = stepscope(*words, variables=recipe.variables)
    time.sleep(START_S)
    said = stepscope("trace", str(session), "--kind", "native", "--seconds", "5", variables={}).communicate()[0]
    job.communicate()
    print(f"{recipe.name}: {said.strip().splitlines()[-1]}", file=sys.stderr)
    return session


def tower(before: Path, after: Path) -> str:
    """Output of ``flame diff`` for the page fault's entry into the kernel, with all below it."""
    found = compare(before, after, event="cpu", window="steady", basis="work", work=None)
    change = next((one.total for one in found.difference.functions if ENTRY.search(one.function.function)), None)
    if change is None:
        return "not beyond noise"
    whole = found.before.profile.total, found.after.profile.total
    said = "beyond noise" if change.significant else "not beyond noise"
    return f"{change.before / whole[0]:.1%} to {change.after / whole[1]:.1%} of CPU time, {said}"


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="shares, causes and remedies of steady page faults")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names of recipes, comma-separated")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/page-faults.md")
    options = parser.parse_args()
    chosen = [one for one in recipes() if not options.only or one.name in options.only.split(",")]
    began = os.getloadavg()[0]
    rows = [
        "| recipe | perf | stated | first | finding | remedy | brings | page faults in `flame diff` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for recipe in chosen:
        with tempfile.TemporaryDirectory(prefix="stepscope-faults-") as name:
            if recipe.faulty:
                rows.append(row(recipe, options.rounds, Path(name)))
            else:
                report, perfs = measured(recipe, Path(name))
                found = "**found**" if finding_of(report) else "not found, as it should be"
                rows.append(f"| {recipe.name} | {perfs:.1%} | - | - | {found} | - | - | - |")
        print(rows[-1], file=sys.stderr, flush=True)
    loads = f"load {began:.1f} when it began and {os.getloadavg()[0]:.1f} when it ended"
    text = HEAD + "\n".join(rows) + f"\n\n{os.cpu_count()} CPUs, {loads}; {options.rounds} rounds.\n"
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
