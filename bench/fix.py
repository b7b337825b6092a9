"""What does ``fix`` keep? Slow programs, clean ones, and A/A edits (a comment added), with a look at the user's tree.

Each program is copied into a new git repository. Without names all are run; ``--results`` is printed as a table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stepscope.model.report.fix import FixReport
from stepscope.report import fix_text
from stepscope.sandbox.isolation import Isolation
from stepscope.use_cases.fix import proof
from stepscope.use_cases.fix.job import Job
from stepscope.use_cases.whatif.runs import Runner

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "fix.jsonl"
SLOW: dict[str, tuple[str, ...]] = {
    "bench/rules/TFD001/slow.py": (),
    "bench/rules/KER001/slow.py": (),
    "bench/rules/TFD002/slow.py": (),
    "bench/rules/TFF005/slow.py": (),
    "bench/cases/20-run-eagerly-left-on/slow.py": ("--rows", "1280", "--epochs", "3"),
    "examples/demo_train.py": (),
}
CLEAN: dict[str, tuple[str, ...]] = {
    "bench/cases/51-clean-fit-in-memory/clean.py": (),
    "bench/cases/52-clean-fit-tf-data/clean.py": ("--count", "3200", "--epochs", "2"),
}
SAME = "bench/rules/TFD001/fixed.py"
MOST_S = 900.0
"""Time for one program."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One program, or one A/A edit."""

    name: str
    kind: str
    report: FixReport | None = None
    verdict: str = ""
    """Outcome of an A/A edit."""
    ratio: float = 0.0
    touched: str = ""
    """What of the user's tree is not as before; "": nothing."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A repository with one program, and what it is like."""

    folder: Path

    def state(self) -> tuple[object, ...]:
        """Files with their times, what git says, refs and mounts."""
        files = [
            (str(path), path.stat().st_mtime_ns) for path in sorted(self.folder.rglob("*")) if ".git" not in path.parts
        ]
        said = [git(self.folder, *words) for words in (("status", "--porcelain"), ("for-each-ref",), ("stash", "list"))]
        return (*files, *said, Path("/proc/self/mountinfo").read_text())


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def planted(name: str, folder: Path) -> Tree:
    """A program in a new repository."""
    shutil.copy(ROOT / name, folder / "train.py")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "as it is")):
        git(folder, *words)
    return Tree(folder)


def fixed(name: str, kind: str, words: tuple[str, ...]) -> Row:
    """``stepscope fix`` on a program."""
    with tempfile.TemporaryDirectory() as place:
        tree = planted(name, Path(place))
        before = tree.state()
        command = [sys.executable, "-m", "stepscope", "fix", "--format", "json", "--time", f"{MOST_S:.0f}s", "train.py"]
        done = subprocess.run([*command, *words], cwd=place, stdout=subprocess.PIPE, check=False)
        touched = "" if tree.state() == before else "not as before"
    report = msgspec.json.decode(done.stdout, type=FixReport) if done.stdout.strip() else None
    return Row(name=name, kind=kind, report=report, touched=touched)


def same(number: int) -> Row:
    """An edit that changes nothing: a comment at one of the program's lines."""
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as runs:
        tree = planted(SAME, Path(place))
        before = tree.state()
        folder = Path(runs).resolve()
        argv = (sys.executable, "train.py")
        os.chdir(place)
        how = Isolation(keep=(folder,))
        runner = Runner(argv=argv, other=(), folder=folder, seconds=0.0, isolation=how, split=True)
        job = Job(runner, MOST_S, lambda line: print(line, file=sys.stderr, flush=True))
        text = (tree.folder / "train.py").read_text().splitlines(keepends=True)
        place_of = 1 + number % (len(text) - 2)
        while text[place_of - 1].rstrip().endswith((",", "(", "[", "\\")) or '"""' in text[place_of - 1]:
            place_of += 1
        text.insert(place_of, f"# {number}\n")
        texts = {str(Path(place).resolve() / "train.py"): "".join(text).encode()}
        found = proof.prove(
            lambda: job.timed({}, "unchanged"), lambda: job.timed(texts, "with a comment"), job.unchanged, "rule"
        )
        os.chdir(ROOT)
        touched = "" if tree.state() == before else "not as before"
    ratio = found.fresh.ratio or found.choosing.ratio
    return Row(name=f"comment {number}", kind="A/A", verdict=found.outcome, ratio=ratio, touched=touched)


def text_of(row: Row) -> str:
    """A row of the page's table."""
    tree = row.touched or "untouched"
    if row.report is None:
        return f"| {row.name} | {row.kind} | {row.verdict or 'failed'} | {row.ratio:.2f} | {tree} |"
    kept = [one for one in row.report.edits if one.outcome == "kept"]
    said = "; ".join(
        f"{one.title}: {1 - one.fresh.ratio:.0%} less a {one.measure}, {fix_text.SAME[one.same]}" for one in kept
    )
    others = "; ".join(f"{one.title}: {one.outcome}" for one in row.report.edits if one.outcome != "kept")
    text = f"{said or 'nothing kept'}{f' (tried: {others})' if others else ''}"
    ratio = row.report.total.ratio or 1.0
    return f"| {row.name} | {row.kind} | {text} | {ratio:.2f} | {tree}, {row.report.seconds:.0f} s |"


def main() -> None:
    """Run, and print the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; A/A for the comments")
    parser.add_argument("--same", type=int, default=5, help="number of A/A edits")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.results.parent.mkdir(exist_ok=True)

    def wanted(name: str) -> bool:
        return not options.names or any(one in name for one in options.names)

    todo = [(name, kind, words) for kind, many in (("slow", SLOW), ("clean", CLEAN)) for name, words in many.items()]
    for name, kind, words in todo:
        if wanted(name):
            keep(options.results, fixed(name, kind, words))
    for number in range(options.same if wanted("A/A") else 0):
        keep(options.results, same(number))
    rows = [msgspec.json.decode(line, type=Row) for line in options.results.read_text().splitlines()]
    print("| program | kind | kept | time after / before | the user's tree |\n|---|---|---|---:|---|")
    print("\n".join(text_of(row) for row in {row.name: row for row in rows}.values()))


def keep(results: Path, row: Row) -> None:
    """Add a row to the file."""
    with results.open("ab") as file:
        file.write(msgspec.json.encode(row) + b"\n")


if __name__ == "__main__":
    main()
