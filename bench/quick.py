"""Has the last change made stepscope dearer? A minute of its own costs, beside another commit's, in turn.

Each line is CPU time of whole process trees (or of a call, measured inside of a program), so that a busy machine does
not decide it. Both trees are run in the order ABBA; a ratio is the median of pairs, with its bootstrap interval.
Exit code 1: some line is surely dearer by more than ``ALLOWED``.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from _stats import bootstrap

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = 0.05
STEPS = """
import sys, time, stepscope
for _ in range(200):
    stepscope.step()
began = time.thread_time_ns()
for _ in range(20_000):
    stepscope.step()
print((time.thread_time_ns() - began) / 20_000 / 1e9)
"""
SPANS = """
import time, stepscope
for _ in range(50):
    stepscope.step()
    for _ in range(40):
        with stepscope.span("work"):
            time.sleep(0.0005)
"""


@dataclass(frozen=True)
class Line:
    """What is measured, and how: a function of a tree and a folder that gives seconds of CPU time."""

    name: str
    measure: Callable[[Path, Path], float]
    before: list[float] = field(default_factory=list)
    now: list[float] = field(default_factory=list)

    def said(self) -> tuple[str, bool]:
        """The line of the table, and whether it is surely dearer than allowed."""
        ratio = bootstrap([b / a for a, b in zip(self.before, self.now, strict=True)])
        middle = sorted(self.before)[len(self.before) // 2], sorted(self.now)[len(self.now) // 2]
        shown = " ".join(f"{_short(value):>10}" for value in middle)
        return (
            f"{self.name:34} {shown} {ratio.value:7.3f} ({ratio.low:.3f} to {ratio.high:.3f})",
            ratio.low > 1 + ALLOWED,
        )


def _short(seconds: float) -> str:
    return f"{1e6 * seconds:.2f} us" if seconds < 1e-3 else f"{1e3 * seconds:.0f} ms"


def _python(tree: Path, folder: Path, *words: str) -> tuple[float, str]:
    """CPU seconds of a Python and all that it waits for, and what it prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("STEPSCOPE", "PYTHONDONT"))}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words],
        env={**environment, "PYTHONPATH": str(tree / "src")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):  # 1: the checker has findings
        sys.exit(f"{' '.join(words)} in {tree} ended with {done.returncode}:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _cost(*words: str) -> Callable[[Path, Path], float]:
    return lambda tree, folder: _python(tree, folder, *words)[0]


def _run(tree: Path, folder: Path) -> float:
    """A whole run of a small program: launcher, job, collector and report."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return _python(tree, Path(scratch), "-m", "stepscope", "run", "-q", str(folder / "spans.py"))[0]


def _step(tree: Path, folder: Path) -> float:
    """One ``stepscope.step()`` in a job that is measured, on the job's thread."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        said = _python(tree, Path(scratch), "-m", "stepscope", "run", "-q", str(folder / "steps.py"))[1]
        return float(said.split()[-1])


LINES = (
    ("start (stepscope --version)", _cost("-m", "stepscope", "--version")),
    ("import of the analysis", _cost("-c", "import stepscope.diagnosis.analyze")),
    ("run of 50 steps, with its report", _run),
    ("report of a session", _cost("-m", "stepscope", "report", "kept.stepscope")),
    ("check of the examples", _cost("-m", "stepscope", "check", str(ROOT / "examples"))),
    ("stepscope.step() in a job", _step),
)


def measure(before: Path, now: Path, folder: Path, seconds: float) -> list[Line]:
    """All lines, in rounds of ABBA until the time is over; two at least."""
    (folder / "steps.py").write_text(STEPS)
    (folder / "spans.py").write_text(SPANS)
    lines = [Line(*line) for line in LINES]
    for tree in (before, now):  # compiles both, and leaves a session to read
        _python(tree, folder, "-m", "stepscope", "run", "-q", "--session", f"{tree.name}.stepscope", "spans.py")
    (folder / f"{before.name}.stepscope").rename(folder / "kept.stepscope")
    end, rounds = time.monotonic() + seconds, 0
    while rounds < 2 or time.monotonic() < end:
        rounds += 1
        for line in lines:
            first, second = line.measure(before, folder), line.measure(now, folder)
            third, fourth = line.measure(now, folder), line.measure(before, folder)
            line.before.extend((first, fourth))
            line.now.extend((second, third))
    return lines


def main() -> int:
    """Compare the working tree with a commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="HEAD", help="commit that the working tree is compared with")
    parser.add_argument("--seconds", type=float, default=60, help="time for the rounds")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepscope-quick-") as scratch:
        folder = Path(scratch)
        other = folder / "before"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", other, asked.against], cwd=ROOT, check=True)
        try:
            lines = measure(other, ROOT, folder, asked.seconds)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=True)
    print(f"{'CPU time':34} {asked.against[:10]:>10} {'now':>10}   ratio (95 %), {len(lines[0].now)} runs each")
    said = [line.said() for line in lines]
    print("\n".join(text for text, _ in said))
    return int(any(dearer for _, dearer in said))


if __name__ == "__main__":
    sys.exit(main())
