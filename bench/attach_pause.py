"""Whether ``stepscope attach`` pauses a process: the longest gap in one that reads the clock in a tight loop.

Usage: attach_pause.py [--rounds 3] [--seconds 12] [--megabytes 512] [--write]

In a first stretch the process is stopped on purpose, to show that a pause would be seen. Each round is one stretch with
an attach and one of the same length without, in alternating order. The target maps and unmaps a page in each turn, so
that it needs the lock of its address space that readers of /proc hold; much of its memory is in small pages, so that
reading its map takes long. A process is paused if it is stopped or has to wait for something: a gap in which the thread
gave up its CPU (a voluntary switch), less the time that it then waited for a CPU. Every other gap is caused by the
machine: others on the CPU (schedstat's account), or the machine itself not running (steal). ``--write`` puts the table
into docs/benchmarks/attach-pause.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "attach-pause.md"
PROGRAM = Path(__file__).with_name("programs") / "stamping.py"
ALLOWED_MS = 10.0
ALONE, ATTACHED, STOPPED = "alone", "attached", "stopped for 30 ms"
STOP_S = 0.03
"""Length of the deliberate stop in the first stretch, which shows that such a pause is seen at all."""
HEAD = """# Does `attach` pause its target?

Printed by `make bench-attach-pause ARGS=--write`. The target stamps the clock in a tight loop and maps, touches and
unmaps a page in each turn. It is paused where it is stopped or waits for something, a lock of its address space say:
a gap in which its thread gave up the CPU, without what it then waited to get one back. Gaps without that are the
machine's doing: others on the CPU, or a host that does not run this machine.

Nothing stops the target. What it can wait for is the lock of its address space, which the kernel holds for whoever
reads it, and longer where others take the reader's CPU meanwhile. With smaps, which counts a mapping in one go, the
same command measured 79.39 ms at a load of 16; since then the page map is scanned in calls of 0.1 ms, made with a
real-time priority ([memory](../memory.md)). A second run, at a load of 5 to 6 and two attaches, saw one gap of 5.18 ms,
whose cause is not known. Everything here ran niced, as root.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The target's gaps in a stretch of time, in milliseconds."""

    what: str
    turns: int
    gap_ms: float
    waited_ms: float
    """Time of that gap spent waiting for a CPU."""
    blocked: int
    """Number of gaps in which it waited for something else."""
    pause_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    turns: int
    gaps: list[dict[str, int]]
    """Gaps, longest first. Nanoseconds: gap, waited; switches: blocked."""


class Target:
    """The process that reads the clock."""

    def __init__(self, megabytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(megabytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def _read(self) -> str:
        if self._process.stdout is None:
            raise RuntimeError("the target has no output")
        return self._process.stdout.readline()

    def _end_stretch(self) -> _Seen:
        if self._process.stdin is None:
            raise RuntimeError("the target has no input")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return _Seen(**json.loads(self._read()))

    def stretch(self, seconds: float, what: str) -> Stretch:
        """Observe it for so many seconds: alone, attached to, or stopped for a moment."""
        self._end_stretch()
        if what == STOPPED:
            time.sleep(seconds / 2)
            self._process.send_signal(signal.SIGSTOP)
            time.sleep(STOP_S)
            self._process.send_signal(signal.SIGCONT)
            time.sleep(seconds / 2)
        elif what == ATTACHED:
            with tempfile.TemporaryDirectory() as folder:
                session = str(Path(folder) / "look.stepscope")
                command = [sys.executable, "-m", "stepscope", "attach", str(self._process.pid)]
                options = ["--seconds", str(seconds), "--session", session]
                subprocess.run([*command, *options], stderr=subprocess.DEVNULL, check=True)
        else:
            time.sleep(seconds)
        found = self._end_stretch()
        gaps = found.gaps
        longest = gaps[0] if gaps else {"gap": 0, "waited": 0}
        blocked = [gap for gap in gaps if gap["blocked"]]
        return Stretch(
            what=what,
            turns=found.turns,
            gap_ms=longest["gap"] / 1e6,
            waited_ms=min(longest["gap"], longest["waited"]) / 1e6,
            blocked=len(blocked),
            pause_ms=max((max(0, gap["gap"] - gap["waited"]) for gap in blocked), default=0) / 1e6,
        )

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def table(stretches: list[Stretch]) -> str:
    """All stretches, and the verdict."""
    lines = [
        "| stretch | turns | longest gap, ms | of it for a CPU | gaps that waited for more | longest pause, ms |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for stretch in stretches:
        cells = f"{stretch.turns:,} | {stretch.gap_ms:.2f} | {stretch.waited_ms:.2f} | {stretch.blocked}"
        lines.append(f"| {stretch.what} | {cells} | {stretch.pause_ms:.2f} |")
    worst = max(s.pause_ms for s in stretches if s.what == ATTACHED)
    verdict = "holds" if worst <= ALLOWED_MS else "does not hold"
    return "\n".join(lines) + f"\n\nNever paused for more than {ALLOWED_MS:g} ms: {verdict}, {worst:.2f} ms at most.\n"


def main() -> int:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description="whether attach pauses a process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    target = Target(options.megabytes)
    try:
        stretches = [target.stretch(2.0, STOPPED)] + [
            target.stretch(options.seconds, what)
            for number in range(options.rounds)
            for what in ((ALONE, ATTACHED) if number % 2 == 0 else (ATTACHED, ALONE))
        ]
    finally:
        target.end()
    where = f"{os.cpu_count()} CPUs, load {load:.1f} when it began and {os.getloadavg()[0]:.1f} when it ended"
    text = f"{where}; {options.megabytes} MiB touched, {options.seconds:g} s a stretch.\n\n" + table(stretches)
    print(text)
    if options.write:
        PAGE.write_text(HEAD + text)
    return int(any(s.what == ATTACHED and s.pause_ms > ALLOWED_MS for s in stretches))


if __name__ == "__main__":
    sys.exit(main())
