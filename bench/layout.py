"""Does the layout of memory matter to inference? All of BERT base, in ONNX Runtime and in PyTorch.

Usage: layout.py [--rounds 10] [--minutes 60] [--point onnxruntime-1-short] [--modes MODE,...] [--write]

A point is an engine, a number of threads, and short passes (batch 8 and 32 of 64 tokens, 8 of 512) or long ones (32
of 512). In each round of a point every mode has a process of its own, every other round in the opposite order. Modes,
set by a preloaded library: allocations of 512 KiB and more begin on boundaries of 2 MiB with holes between them
(aligned), or lie directly behind each other (packed), in huge pages; ``-off``: without huge pages.

What was run is kept, a file for each point, so that it may be stopped and continued by the same command; it stops by
itself before the round that would end after ``--minutes``. Transformers and PyTorch come from a virtual environment of
their own, which is made if it is not there. Run it on a quiet machine. ``--write`` writes docs/benchmarks/layout.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from _stats import Interval, bootstrap
from stepscope.derive.machine import address_space
from stepscope.launcher import layouts
from stepscope.native.memory import memory_look

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "layout.md"
PROGRAMS = ROOT / "bench" / "programs"
BUILD = ROOT / "build"
NEEDS = ("torch==2.13.*", "transformers==5.*", "onnx", "onnxruntime")
MODES: Mapping[str, Mapping[str, str]] = {
    "aligned": {"STEPSCOPE_LAYOUT": "padded", "STEPSCOPE_LAYOUT_HUGE": "1", "STEPSCOPE_THP": "always"},
    "packed": {"STEPSCOPE_LAYOUT": "packed", "STEPSCOPE_LAYOUT_HUGE": "1", "STEPSCOPE_THP": "always"},
    "packed-off": {"STEPSCOPE_LAYOUT": "packed", "STEPSCOPE_THP": "off"},
    "aligned-off": {"STEPSCOPE_LAYOUT": "padded", "STEPSCOPE_THP": "off"},
}
QUESTIONS = (
    ("aligned / packed, huge pages", "aligned", "packed"),
    ("huge pages / none, packed", "packed", "packed-off"),
    ("aligned / packed, no huge pages", "aligned-off", "packed-off"),
)
SHORT, LONG = ((8, 64), (32, 64), (8, 512)), ((32, 512),)
COUNTED = {(8, 64): 2}
"""Passes of a shape that count; 1 of the others."""
PLANNED = {"onnxruntime"}
"""Engines that lay memory out by the first pass of a shape: that one does not count, but for the longest."""
POINTS = (
    *("onnxruntime-1-short", "onnxruntime-2-short", "onnxruntime-2-long", "pytorch-2-short", "pytorch-1-short"),
    *("pytorch-2-long", "onnxruntime-1-long", "pytorch-1-long"),
)
"""In the order in which they are run: the first five take an hour."""
SMALL, MIN_ROUNDS, SAME = 0.05, 10, 1e-3
MIB = 1 << 20
HEAD = """# Does the layout of memory matter to inference?

Printed by `make bench-layout ARGS=--write`. BERT base by Transformers' configuration, all 12 layers, random weights
saved in shards of 100 MB and loaded again, in ONNX Runtime and in PyTorch: forward passes with allocations of 512 KiB
and more on boundaries of 2 MiB with holes between them (*aligned*) or directly behind each other (*packed*), in huge
pages or without. Each mode has a process of its own in each round. *Speed*: of the first by that of the second, by wall
time; *user time*: the same by CPU time in user mode, which is without page faults; medians over the rounds with 95 %
intervals. *Effect*: what the interval of speed allows to say. The source (linux-mm 2025) has 11 to 32 times. Requests
of mixed shapes, and what an engine's own layout is: [layout-requests](layout-requests.md).

"""


class Passes(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one pass, means over the passes of a shape that count."""

    batch: int
    length: int
    wall_s: float
    user_s: float
    system_s: float
    faults: float
    sum: float
    """Of the absolute values of the output: modes must agree."""
    huge_bytes: int = 0
    hole_bytes: int = 0
    anonymous: str = ""
    """How its large mappings lie, by ``stepscope memory``, after the passes."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A process, as a line of a point's file."""

    round: int
    mode: str
    load: float
    """The machine's load when it began."""
    shapes: tuple[Passes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point and where its runs are kept."""

    name: str
    path: Path

    def runs(self) -> list[Run]:
        """Those of earlier calls and of this one, the last of each round and mode."""
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        found = [msgspec.json.decode(line, type=Run) for line in lines]
        return list({(one.round, one.mode): one for one in found}.values())

    def command(self, python: Path, folder: Path) -> list[str]:
        """The program's command line."""
        engine, threads, kind = self.name.split("-")
        plan = [
            (*shape, int(engine in PLANNED and kind == "short"), COUNTED.get(shape, 1))
            for shape in (SHORT if kind == "short" else LONG)
        ]
        return [str(python), str(PROGRAMS / "bert_passes.py"), engine, str(folder), threads, json.dumps(plan)]


def executed(command: Sequence[str], mode: str) -> Iterator[Passes]:
    """Run the program in a mode; the figures of each shape, with what the process's memory is like after it.

    Raises:
        RuntimeError: it failed.
    """
    environment = {**os.environ, **MODES[mode], "LD_PRELOAD": str(layouts.library()), "TRANSFORMERS_OFFLINE": "1"}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        for line in process.stdout:
            look = address_space.build([memory_look.look(process.pid, time.monotonic_ns())])
            yield msgspec.structs.replace(
                msgspec.json.decode(line, type=Passes),
                huge_bytes=look.huge_bytes,
                hole_bytes=look.layout.hole_bytes,
                anonymous=look.layout.verdict,
            )
            process.stdin.write("\n")
            process.stdin.flush()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")


def measure(point: Point, command: Sequence[str], modes: Sequence[str], rounds: int, until: float) -> bool:
    """Run what a point lacks; False if the time is up before it is whole."""
    whole = {number for number in range(rounds) if set(modes) <= {r.mode for r in point.runs() if r.round == number}}
    longest = 0.0
    for number in sorted(set(range(rounds)) - whole):
        began = time.monotonic()
        if began + longest > until:
            return False
        for mode in modes if number % 2 == 0 else modes[::-1]:
            load = os.getloadavg()[0]
            run = Run(round=number, mode=mode, load=load, shapes=tuple(executed(command, mode)))
            with point.path.open("ab") as file:
                file.write(msgspec.json.encode(run) + b"\n")
            times = ", ".join(f"{one.batch} x {one.length}: {one.wall_s:.2f} s" for one in run.shapes)
            print(f"{point.name} round {number + 1} {mode}: {times}; load {load:.1f}", file=sys.stderr, flush=True)
        longest = max(longest, time.monotonic() - began)
    return True


def shapes_of(runs: Sequence[Run]) -> dict[tuple[int, int], dict[str, dict[int, Passes]]]:
    """By shape and mode, the figures of each round.

    Raises:
        RuntimeError: two modes computed different things.
    """
    found: dict[tuple[int, int], dict[str, dict[int, Passes]]] = {}
    for run in runs:
        for one in run.shapes:
            found.setdefault((one.batch, one.length), {}).setdefault(run.mode, {})[run.round] = one
    for shape, modes in found.items():
        sums = [one.sum for rounds in modes.values() for one in rounds.values()]
        if max(sums) > (1 + SAME) * min(sums):
            raise RuntimeError(f"{shape}: the modes computed different things: {sums}")
    return found


def speed(modes: Mapping[str, Mapping[int, Passes]], first: str, second: str) -> tuple[Interval, Interval, int] | None:
    """Speed of the first mode by that of the second, by wall and user time, and how many rounds have both."""
    one, two = modes.get(first, {}), modes.get(second, {})
    both = sorted(one.keys() & two.keys())
    if not both:
        return None
    wall = bootstrap([two[r].wall_s / one[r].wall_s for r in both])
    return wall, bootstrap([two[r].user_s / one[r].user_s for r in both]), len(both)


def verdict(ratio: Interval, rounds: int) -> str:
    """What an interval allows to say."""
    if rounds < MIN_ROUNDS:
        return f"{rounds} of {MIN_ROUNDS} rounds"
    if ratio.low > 1 - SMALL and ratio.high < 1 + SMALL:
        return "below 5 %"
    if ratio.low > 1:
        return f"faster by {100 * (ratio.low - 1):.0f} % or more"
    if ratio.high < 1:
        return f"slower by {100 * (1 - ratio.high):.0f} % or more"
    return f"at most {100 * max(1 - ratio.low, ratio.high - 1):.0f} %"


def tables(points: Sequence[Point]) -> str:
    """Both tables: speeds, and memory."""
    speeds = [
        "| engine | threads | batch x tokens | s a pass | question | speed (95 %) | user time (95 %) | effect |",
        "|---|---:|---|---:|---|---|---|---|",
    ]
    memory = [
        "| engine | threads | batch x tokens | mode | faults a pass | huge MiB | holes MiB | mappings lie | load |",
        "|---|---:|---|---|---:|---:|---:|---|---|",
    ]
    for point in points:
        runs = point.runs()
        loads = [run.load for run in runs]
        engine, threads, _ = point.name.split("-")
        for shape, modes in shapes_of(runs).items():
            start = f"| {engine} | {threads} | {shape[0]} x {shape[1]}"
            for words, first, second in QUESTIONS:
                if (found := speed(modes, first, second)) is not None:
                    wall, user, rounds = found
                    took = median(one.wall_s for one in modes[second].values())
                    said = (f"{took:.2f}", words, _text(wall), _text(user), verdict(wall, rounds))
                    speeds.append(f"{start} | {' | '.join(said)} |")
            for mode, by_round in modes.items():
                seen = list(by_round.values())
                cells = (
                    *(mode, f"{median(one.faults for one in seen):,.0f}"),
                    f"{median(one.huge_bytes for one in seen) / MIB:,.0f}",
                    f"{median(one.hole_bytes for one in seen) / MIB:,.0f}",
                    *("/".join(sorted({one.anonymous for one in seen})), f"{min(loads):.1f}-{max(loads):.1f}"),
                )
                memory.append(f"{start} | {' | '.join(cells)} |")
    return "## Speed\n\n" + "\n".join(speeds) + "\n\n## Memory\n\n" + "\n".join(memory) + "\n"


def _text(ratio: Interval) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def prepare(venv: Path, folder: Path) -> Path:
    """Make what is not there: the virtual environment and the model; returns the Python to run."""
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *NEEDS], check=True)
    if not (folder / "bert.onnx").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([str(python), str(PROGRAMS / "bert_shards.py"), str(folder)], check=True)
    return python


def main() -> int:
    """Measure what is not measured yet, print, perhaps write."""
    parser = argparse.ArgumentParser(description="does the layout of memory matter to inference?")
    parser.add_argument("--point", default=",".join(POINTS), help="points, comma-separated")
    parser.add_argument("--modes", default="aligned,packed,packed-off", help=f"of {', '.join(MODES)}")
    parser.add_argument("--rounds", type=int, default=MIN_ROUNDS)
    parser.add_argument("--minutes", type=float, default=60.0, help="time after which no round begins")
    parser.add_argument("--results", type=Path, default=BUILD / "layout", help="folder; results in it are kept")
    parser.add_argument("--model", type=Path, default=BUILD / "bert", help="folder of the model, made if not there")
    parser.add_argument("--venv", type=Path, default=BUILD / "bert-venv", help="virtual environment, made if not there")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/layout.md")
    options = parser.parse_args()
    python = prepare(options.venv, options.model)
    options.results.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * options.minutes
    points = [Point(name=name, path=options.results / f"{name}.jsonl") for name in options.point.split(",")]
    lacking: list[str] = []
    for point in points:
        command = point.command(python, options.model)
        if lacking or not measure(point, command, options.modes.split(","), options.rounds, until):
            lacking.append(point.name)
    mode = layouts.MODE.read_text().strip()
    about = f"Linux {platform.release()}, {os.cpu_count()} CPUs, huge pages: {mode}; {options.rounds} rounds.\n"
    if lacking:
        about += f"\nNot whole, for lack of time: {', '.join(lacking)}.\n"
    text = f"{about}\n{tables(points)}"
    print(text)
    if options.write:
        PAGE.write_text(HEAD + text)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
