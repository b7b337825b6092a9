"""How fast is the checker, and does any file stop it? Runs it over trees of sources, next to ruff on the same trees.

Speed: a tree is checked by a fresh process, cold (no cache) and warm (a second time), in turn with ``ruff`` where that
is installed; seconds are stated per 100,000 lines of Python. No crash: every tree is checked, and a process that dies,
a rule that fails or a file that cannot be read is listed. With --write both tables go to docs/benchmarks/check.md.

Usage: check.py [TREE...] [--speed TREE] [--rounds N] [--write]; without trees, the standard library of this Python.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from stepscope.checker.discover import discover

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "check.md"
PER = 100_000
"""Lines that seconds are stated for."""
COLD_GOAL = 3.0
WARM_GOAL = 0.5
DEEPPERF_LINES_PER_SECOND = (160, 300)
"""Of its checker of graphs, as measured with its public sources; its two other checkers are as slow or slower."""
SKIPPED, FAILED = "DX070", "DX071"


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What one process took."""

    wall: float
    cpu: float
    code: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What became of one tree."""

    name: str
    files: int
    lines: int
    wall: float
    code: int
    findings: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Reasons why files could not be checked."""
    failures: tuple[str, ...] = ()

    @property
    def survived(self) -> bool:
        """It ended as a linter ends, and no rule failed."""
        return self.code in (0, 1) and not self.failures


def run(words: Sequence[str], environ: Mapping[str, str]) -> Took:
    """Run a process, with the CPU time of its children."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(environ))
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall=wall, cpu=cpu, code=done.returncode, output=done.stdout, errors=done.stderr)


def lines_of(tree: Path) -> int:
    """Lines of the Python files that a check reads."""
    return sum(path.read_bytes().count(b"\n") for path in discover([tree]) if path.suffix == ".py")


def stepscope(tree: Path, cache: Path) -> Took:
    """Check a tree with the caches of a user that has this home."""
    words = [sys.executable, "-m", "stepscope", "check", "--format", "json", str(tree)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(cache)}
    return run(words, environ)


def survive(tree: Path, cache: Path) -> Tree:
    """Check a tree once, for what stops the checker."""
    took = stepscope(tree, cache)
    try:
        report = json.loads(took.output)
    except ValueError:
        tail = (took.errors.strip().splitlines() or ["no report"])[-1]
        return Tree(name=tree.name, files=0, lines=0, wall=took.wall, code=took.code, failures=(tail,))
    notes = report["diagnostics"]
    reasons = Counter(_reason(note["text"]) for note in notes if note["code"] == SKIPPED)
    return Tree(
        name=tree.name,
        files=report["files"],
        lines=lines_of(tree),
        wall=took.wall,
        code=took.code,
        findings=Counter(finding["severity"] for finding in report["findings"]),
        skipped=reasons,
        failures=tuple(note["text"] for note in notes if note["code"] == FAILED),
    )


def _reason(text: str) -> str:
    """Why a file was skipped, without its path and the place in it."""
    return text.partition(": skipped: ")[2].partition(" (")[0].partition(":")[0] or text


def speed(tree: Path, rounds: int) -> list[tuple[str, float, float, float]]:
    """Name, median wall and CPU seconds, and wall seconds per 100,000 lines: cold, warm and ruff, in turn."""
    lines = lines_of(tree)
    ruff = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    took: dict[str, list[Took]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-check-") as cache:
            took.setdefault("stepscope check, cold", []).append(stepscope(tree, Path(cache)))
            took.setdefault("stepscope check, warm", []).append(stepscope(tree, Path(cache)))
        for name, select in (("ruff PERF, no cache", "PERF"), ("ruff ALL, no cache", "ALL")):
            if ruff is not None:
                words = [ruff, "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", "--select", select]
                took.setdefault(name, []).append(run([*words, "--output-format", "json", str(tree)], os.environ))
    rows = []
    for name, all_of in took.items():
        wall, cpu = median(one.wall for one in all_of), median(one.cpu for one in all_of)
        rows.append((name, wall, cpu, wall * PER / max(lines, 1)))
    return rows


def speed_table(tree: Path, rows: Sequence[tuple[str, float, float, float]], rounds: int) -> str:
    """The first table of the page."""
    lines = lines_of(tree)
    slow, fast = (PER / rate for rate in DEEPPERF_LINES_PER_SECOND)
    head = (
        f"One tree of {lines:,} lines of Python, {rounds} rounds in turn, medians; {os.cpu_count()} cores. Goals: "
        f"{COLD_GOAL:g} s for 100,000 lines cold, {WARM_GOAL:g} s warm."
    )
    text = [
        head,
        "",
        "| | wall s | CPU s | wall s per 100,000 lines |",
        "|---|---|---|---|",
        *(f"| {name} | {wall:.2f} | {cpu:.2f} | {each:.2f} |" for name, wall, cpu, each in rows),
        f"| DeepPerf, its checker of graphs, as measured on other trees | | | {fast:.0f}-{slow:.0f} |",
    ]
    return "\n".join(text) + "\n"


def crash_table(trees: Sequence[Tree]) -> str:
    """The second table of the page."""
    survived = sum(tree.survived for tree in trees)
    lines = sum(tree.lines for tree in trees)
    files = sum(tree.files for tree in trees)
    text = [
        f"{survived} of {len(trees)} trees checked to the end without a failure: {files:,} files, {lines:,} lines.",
        "",
        "| tree | files | lines | error | warning | info | skipped | failures |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for tree in trees:
        counts = " | ".join(str(tree.findings.get(word, 0)) for word in ("error", "warning", "info"))
        skipped = ", ".join(f"{number} {why}" for why, number in tree.skipped.items()) or "none"
        failures = "; ".join(tree.failures[:3]) or ("none" if tree.survived else f"exit code {tree.code}")
        cells = f"{tree.name} | {tree.files} | {tree.lines} | {counts} | {skipped} | {failures}"
        text.append("| " + cells.replace("\n", " ") + " |")
    return "\n".join(text) + "\n"


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="speed of the checker, and what stops it")
    parser.add_argument("trees", nargs="*", type=Path, help="trees that must not stop it")
    parser.add_argument("--speed", type=Path, help="the tree to time; default: the first one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    trees = options.trees or [Path(sysconfig.get_path("stdlib"))]
    timed = options.speed or trees[0]
    text = ""
    if options.rounds:
        text = speed_table(timed, speed(timed, options.rounds), options.rounds)
        print(text)
    checked = []
    with tempfile.TemporaryDirectory(prefix="bench-check-") as cache:
        for tree in trees:
            checked.append(survive(tree, Path(cache)))
            one = checked[-1]
            print(f"{one.name}: {one.files} files, {one.wall:.1f} s, {dict(one.findings)}", file=sys.stderr, flush=True)
    crashes = crash_table(checked)
    print(crashes)
    if options.write:
        head = "# Speed of the checker, and what stops it\n\nPrinted by `make bench-check`.\n\n"
        PAGE.write_text(f"{head}## Speed\n\n{text}\n## No file stops it\n\n{crashes}", encoding="utf-8")
    return 0 if all(tree.survived for tree in checked) else 1


if __name__ == "__main__":
    sys.exit(main())
