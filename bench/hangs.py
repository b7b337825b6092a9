"""How soon a hang is told while it lasts: real programs that hang in seven ways, each started under ``stepscope run``.

Usage: python bench/hangs.py [--rounds N] [PROGRAM...]; writes docs/benchmarks/hangs.md.

The programs are those of the tests (tests/run/programs/hangs). Each is watched through ``stepscope ps --json`` once a
second until its hang is told, and ended then. Counted is the time from the last work to the telling, by the sidecar's
clock, and whether kind and line are right: the line is the one marked "hangs here".
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _left_behind

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/run/programs/hangs"
PAGE = ROOT / "docs/benchmarks/hangs.md"
KINDS = {
    "graph_queue": "queue",
    "python_queue": "queue",
    "endless_filter": "dataset",
    "empty_dataset": "dataset",
    "dead_worker": "process",
    "two_locks": "lock",
    "silent_server": "network",
}
PATIENCE_S = 180.0
LIMIT_S = 30.0


def watched(program: str, folder: Path) -> dict[str, object] | None:
    """What was told of one program's hang; None if nothing was."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "stepscope"]
    session = folder / f"{program}.stepscope"
    job = subprocess.Popen(
        [*command, "run", "--session", str(session), f"{program}.py"],
        cwd=PROGRAMS,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and job.poll() is None:
            listed = subprocess.run([*command, "ps", "--json"], env=environment, capture_output=True, check=True).stdout
            mine = [one for one in json.loads(listed)["jobs"] if one["session"] == str(session)]
            if mine and mine[0]["hang"]:
                told: dict[str, object] = mine[0]["hang"]
                return told
            time.sleep(1)
        return None
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait()


def marked(program: str) -> int:
    """The line in which a program hangs."""
    lines = (PROGRAMS / f"{program}.py").read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# hangs here" in line)


@_left_behind.nothing_stays()
def main() -> None:
    """Run all, print and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*", default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for program in options.programs:
        seconds, kinds, lines, text = [], 0, 0, ""
        for _ in range(options.rounds):
            folder = Path(tempfile.mkdtemp())
            told = watched(program, folder)
            shutil.rmtree(folder, ignore_errors=True)
            if told is None:
                continue
            seconds.append((int(str(told["told_ns"])) - int(str(told["since_ns"]))) / 1e9)
            kinds += told["kind"] == KINDS[program]
            lines += told["line"] == marked(program)
            text = f"{told['state']}: {told['text']}"
        times = f"{statistics.median(seconds):.0f} ({min(seconds):.0f}-{max(seconds):.0f})" if seconds else "-"
        soon = sum(value <= LIMIT_S for value in seconds)
        each = options.rounds
        rows.append(
            f"| {program} | {KINDS[program]} | {soon}/{each} | {times} | {kinds}/{each} | {lines}/{each} | {text} |"
        )
        sys.stdout.write(rows[-1] + "\n")
        sys.stdout.flush()
    PAGE.write_text(HEAD + "\n".join(rows) + "\n" + FOOT, "utf-8")


HEAD = """# Hangs told while they last

Made by `python bench/hangs.py`: programs of tests/run/programs/hangs train some steps and then hang, under
`stepscope run`. Seconds are from the last work to the telling, median (lowest-highest), by the sidecar's clock. Kind
and line are right if they are those that the program was written with.

| program | kind | told within 30 s | seconds | kind right | line right | words |
|---|---|---|---|---|---|---|
"""
FOOT = """
The least time is 14 s by decision ([0072](../decisions/0072-hangs-while-they-last.md)); a job that computes while no
batch comes is told after 20 s. Both become longer where the job paused that long before. On a machine whose CPUs are
all taken by others, a job that waits for a CPU is not told until it gets one.
"""

if __name__ == "__main__":
    main()
