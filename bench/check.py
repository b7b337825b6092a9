"""How fast is the checker, and does any file stop it? Runs it over trees of sources, next to ruff on the same trees.

Speed: a tree is checked by a fresh process, cold (no cache) and warm (a second time), in turn with ``ruff`` where that
is installed, and with Python's own parser as a yardstick: machines differ, and what else runs on them, but CPU time in
units of ``ast.parse`` of the same files carries over. Byte code is there before, as after an installation.

No crash: every tree is checked, and a process that dies, a rule that fails or a file that cannot be read is listed.
With --write both tables go to docs/benchmarks/check.md.

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

from stepscope.check.source.discover import discover

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "check.md"
PER = 100_000
"""Number of lines that stated seconds refer to."""
COLD_GOAL = 3.0
WARM_GOAL = 0.5
DEEPPERF_LINES_PER_SECOND = (160, 300)
"""Lines per second of DeepPerf's checker of graphs, measured with its public sources; its two others are no faster."""
SKIPPED, FAILED = "DX070", "DX071"
YARDSTICK = "ast.parse"
PARSE = """
import ast, contextlib, gc, pathlib, sys, warnings
from stepscope.check.source.discover import discover
gc.disable()
warnings.simplefilter("ignore")
for path in discover([pathlib.Path(sys.argv[1])]):
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        ast.parse(path.read_bytes())
"""
"""Program that only runs Python's parser, with garbage collection off, as in the checker: it would double the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Time and memory of one process."""

    wall: float
    cpu: float
    code: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Result of one tree."""

    name: str
    files: int
    lines: int
    wall: float
    code: int
    findings: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Reasons why files could not be checked, with counts."""
    failures: tuple[str, ...] = ()

    @property
    def survived(self) -> bool:
        """Whether it ended as a linter should and no rule failed."""
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


def environ(home: Path) -> dict[str, str]:
    """Environment of a user with this home for caches, byte code among them."""
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = str(home / "byte-code")
    return {**quiet, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(home), "PYTHONPYCACHEPREFIX": code}


def stepscope(tree: Path, home: Path) -> Took:
    """Check a tree with the caches of a user with this home."""
    words = [sys.executable, "-m", "stepscope", "check", "--show-info", "--format", "json", str(tree)]
    return run(words, environ(home))


def parse(tree: Path, home: Path) -> Took:
    """Run the yardstick on the same files."""
    return run([sys.executable, "-c", PARSE, str(tree)], environ(home))


def survive(tree: Path, cache: Path) -> Tree:
    """Check a tree once, looking for anything that stops the checker."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Timings of one program: medians over the rounds."""

    name: str
    wall: float
    cpu: float
    yards: float
    """CPU time over that of the yardstick in the same round."""


def speed(tree: Path, rounds: int) -> list[Row]:
    """The checker cold and warm, the yardstick, and ruff, in turn."""
    ruff = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    took: dict[str, list[Took]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-check-") as folder:
        home = Path(folder)
        stepscope(ROOT / "bench" / "_stats.py", home)
        parse(ROOT / "bench" / "_stats.py", home)
        for _ in range(rounds):
            shutil.rmtree(home / "stepscope", ignore_errors=True)
            took.setdefault("stepscope check, cold", []).append(stepscope(tree, home))
            took.setdefault("stepscope check, warm", []).append(stepscope(tree, home))
            took.setdefault(YARDSTICK, []).append(parse(tree, home))
            for name, select in (("ruff PERF, no cache", "PERF"), ("ruff ALL, no cache", "ALL")):
                if ruff is not None:
                    words = [ruff, "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", "--select", select]
                    took.setdefault(name, []).append(run([*words, "--output-format", "json", str(tree)], os.environ))
    return [
        Row(
            name=name,
            wall=median(one.wall for one in every),
            cpu=median(one.cpu for one in every),
            yards=median(one.cpu / max(yard.cpu, 1e-9) for one, yard in zip(every, took[YARDSTICK], strict=True)),
        )
        for name, every in took.items()
    ]


def speed_table(tree: Path, rows: Sequence[Row], rounds: int) -> str:
    """The first table of the page."""
    lines = lines_of(tree)
    per = PER / max(lines, 1)
    slow, fast = (PER / rate for rate in DEEPPERF_LINES_PER_SECOND)
    head = (
        f"One tree, {tree.name}, of {lines:,} lines of Python, {rounds} rounds in turn, medians; {os.cpu_count()} "
        f"logical CPUs with a load of {os.getloadavg()[1]:.1f}, these runs included. Goals: {COLD_GOAL:g} s for "
        f"100,000 lines cold, {WARM_GOAL:g} s warm."
    )
    text = [
        head,
        "",
        f"| | wall s | CPU s | wall s per 100,000 lines | CPU s per 100,000 lines | CPU in {YARDSTICK} |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.wall:.2f} | {row.cpu:.2f} | {row.wall * per:.2f} | {row.cpu * per:.2f} "
            f"| {row.yards:.2f} |"
            for row in rows
        ),
        f"| DeepPerf, its checker of graphs, as measured on other trees | | | | {fast:.0f}-{slow:.0f} | |",
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
