"""Does the layout of memory matter to inference? A model of BERT base's width in TensorFlow and ONNX Runtime.

Usage: layout_requests.py [--layers 1] [--rounds 4] [--engines tensorflow,onnxruntime] [--write]

Rows: each engine answers requests of batch 8 and 32, length 64 and 512, the first of each shape (cold) and those
after it (warm), then a mix of shapes from one and from two client threads; before that it loads arrays of 0.5 to 1.5
MB. Printed are latency, faults and what ``stepscope memory`` says of the process, held against an independent reading
of /proc.

Layouts: the same mix, with allocations of 512 KiB and more laid out by a preloaded library: each on a boundary of 2
MiB with a hole behind it (padded), or each directly behind the last (packed); huge pages are asked for in both.
Rounds take turns; the ratio of the requests per CPU second of a pair of neighbours has an interval over the rounds.
CPU time, because others may use the machine. ``--write`` puts both tables into docs/benchmarks/layout-requests.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from _stats import Interval, bootstrap
from stepscope.derive.machine import address_space
from stepscope.launcher.layouts import SOURCE
from stepscope.model.report.machine.memory_map import MemoryMap
from stepscope.native.memory import memory_look

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks" / "layout-requests.md"
PROGRAMS = HERE / "programs"
ENGINES = ("tensorflow", "onnxruntime", "onnxruntime-without-arena")
LAYOUTS = ("padded", "packed")
MIX = [(8, 64), (16, 64), (8, 128), (32, 64)]
WARM = {(8, 64): 3, (32, 64): 2, (8, 512): 1, (32, 512): 1}
SHARDS = 100
MIB = 1 << 20
MIN_ROUNDS = 4
"""Minimum number of rounds for a verdict: fewer give no interval."""
HEAD = """# Does the layout of memory matter to inference?

Printed by `make bench-layout-requests ARGS=--write`: requests of changing shape to a model of BERT base's width
(embeddings and LAYERS of its 12 layers, which repeat each other) in TensorFlow and in ONNX Runtime, with its arena and
without. On a machine that others use read faults, not milliseconds; layouts are compared by CPU time, in pairs of
neighbours. Huge pages are in use where they are asked for: in the layouts all is asked for, in the rows what the engine
asks for itself.
The arrays are the weights in shards; "read" sums them five times.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of requests, and the process after it."""

    name: str
    faults: int
    cpu_s: float
    wall_s: float
    times: tuple[float, ...]
    """Seconds of each request."""
    moved: int
    """Number of bytes loaded or read."""
    look: MemoryMap
    agrees: bool
    """Whether ``look`` and an independent reading of /proc agree."""


def stretches(engine: str, folder: Path, layers: int, plan: Sequence[object], env: Mapping[str, str]) -> list[Stretch]:
    """Run the program; returns its figures for each stretch and its memory after it."""
    arguments = [engine, str(layers), str(folder / "bert.onnx"), str(folder / "shards"), json.dumps(plan)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", **env}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "bert_requests.py"), *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        found = list(_read(process))
    if process.returncode or len(found) != len(plan) + 3:
        raise RuntimeError(f"{engine} ended with {process.returncode} after {len(found)} stretches")
    return found


def _read(process: subprocess.Popen[str]) -> Iterator[Stretch]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    for line in process.stdout:
        said = json.loads(line)
        look = address_space.build([memory_look.look(process.pid, time.monotonic_ns())])
        yield Stretch(
            name=said["name"],
            faults=said["faults"],
            cpu_s=said["cpu_s"],
            wall_s=said["wall_s"],
            times=tuple(said.get("times", ())),
            moved=said.get("bytes", 0),
            look=look,
            agrees=_independent(process.pid) == (look.mappings, look.huge_bytes, look.resident_bytes),
        )
        process.stdin.write("\n")
        process.stdin.flush()


def _independent(pid: int) -> tuple[int, int, int]:
    """Mappings, bytes in huge pages and resident bytes, summed from the text of smaps by independent code."""
    mappings = huge = resident = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head, _, rest = line.partition(" ")
        if head == "VmFlags:":
            mappings += 1
        elif line.endswith("[vsyscall]"):
            mappings -= 1  # the kernel's own page
        elif head == "AnonHugePages:":
            huge += int(rest.split()[0]) << 10
        elif head == "Rss:":
            resident += int(rest.split()[0]) << 10
    return mappings, huge, resident


def rows(engines: Sequence[str], folder: Path, layers: int) -> str:
    """The first table."""
    plan: list[object] = []
    for shape, count in WARM.items():
        name = f"{shape[0]} x {shape[1]}"
        plan.append({"name": f"{name} cold", "clients": 1, "requests": [shape]})
        plan.append({"name": f"{name} warm", "clients": 1, "requests": [shape] * count})
    plan += [{"name": f"mix, {n} client{'s' * (n > 1)}", "clients": n, "requests": MIX} for n in (1, 2)]
    lines = [
        (
            "| engine | stretch | requests | median ms | longest ms | faults each | huge MiB of eligible | maps "
            "| holes MiB | layout | /proc agrees |"
        ),
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for engine in engines:
        for part in stretches(engine, folder, layers, plan, {}):
            times = part.times or (part.wall_s,)
            look = part.look
            huge = f"{look.huge_bytes / MIB:.0f} of {look.eligible_bytes / MIB:.0f}"
            cells = (
                *(engine, part.name, str(len(times)), f"{1e3 * median(times):.0f}", f"{1e3 * max(times):.0f}"),
                *(f"{part.faults / len(times):,.0f}", huge, f"{look.mappings:,}"),
                *(f"{look.layout.hole_bytes / MIB:.0f}", look.layout.verdict, "yes" if part.agrees else "no"),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def layouts(engines: Sequence[str], folder: Path, layers: int, rounds: int, shim: Path) -> str:
    """The second table."""
    plan: list[object] = [{"name": name, "clients": 1, "requests": MIX} for name in ("warm-up", "mix")]
    lines = [
        (
            "| engine | told apart as | holes MiB | huge MiB, padded : packed | faults a request, padded : packed "
            "| requests per CPU-s, padded : packed (95 %) | arrays read, padded : packed (95 %) | does layout cost? |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for engine in engines:
        seen: dict[str, list[list[Stretch]]] = {layout: [] for layout in LAYOUTS}
        for number in range(rounds):
            for layout in LAYOUTS if number % 2 == 0 else LAYOUTS[::-1]:
                env = {"LD_PRELOAD": str(shim), "STEPSCOPE_LAYOUT": layout, "STEPSCOPE_LAYOUT_HUGE": "1"}
                seen[layout].append(stretches(engine, folder, layers, plan, env))
        lines.append(_compared(engine, seen))
    return "\n".join(lines) + "\n"


def _compared(engine: str, seen: Mapping[str, list[list[Stretch]]]) -> str:
    last = {layout: [run[-1] for run in runs] for layout, runs in seen.items()}
    padded, packed = (last[layout] for layout in LAYOUTS)
    served = _ratio([one.cpu_s for one in padded], [one.cpu_s for one in packed])
    read = _ratio(*([run[1].cpu_s for run in seen[layout]] for layout in LAYOUTS))
    told = ", ".join(
        f"{layout}: {'/'.join(sorted({s.look.layout.verdict for s in last[layout]}))}" for layout in LAYOUTS
    )
    holes = " : ".join(f"{median(s.look.layout.hole_bytes for s in last[one]) / MIB:.0f}" for one in LAYOUTS)
    huge = " : ".join(f"{median(s.look.huge_bytes for s in last[one]) / MIB:.0f}" for one in LAYOUTS)
    faults = " : ".join(f"{median(s.faults / len(s.times) for s in last[one]):,.0f}" for one in LAYOUTS)
    cells = (engine, told, holes, huge, faults, _text(served), _text(read), verdict(served, read, len(padded)))
    return f"| {' | '.join(cells)} |"


def _ratio(padded: Sequence[float], packed: Sequence[float]) -> Interval:
    """Throughput of padded by that of packed, from CPU times of pairs of neighbours."""
    return bootstrap([two / one for one, two in zip(padded, packed, strict=True)])


def _text(ratio: Interval) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def verdict(served: Interval, read: Interval, rounds: int) -> str:
    """The verdict on both intervals: names each that excludes 1."""
    if rounds < MIN_ROUNDS:
        return "too few rounds"
    found = [
        f"{what}: {'packed' if ratio.low > 1 else 'padded'} is slower"
        for what, ratio in (("requests", served), ("arrays read", read))
        if ratio.low > 1 or ratio.high < 1
    ]
    return "; ".join(found) or "no difference beyond noise"


def prepare(folder: Path, layers: int) -> Path:
    """Make the model, the arrays and the library that sets the layout; returns the last."""
    subprocess.run(
        [sys.executable, str(PROGRAMS / "bert_model.py"), str(folder / "bert.onnx"), str(layers)], check=True
    )
    (folder / "shards").mkdir()
    rng = random.Random(1)
    for number in range(SHARDS):
        size = rng.randrange(MIB // 2, 3 * MIB // 2) // 4
        np.save(folder / "shards" / f"{number:03}.npy", np.full(size, number, np.float32))
    shim = folder / "layouts.so"
    compiled = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(shim), str(SOURCE), "-ldl"]
    subprocess.run(compiled, check=True)
    return shim


def main() -> int:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description="does the layout of memory matter to inference?")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    engines = options.engines.split(",")
    began, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shim = prepare(folder, options.layers)
        parts = [rows(engines, folder, options.layers)]
        parts.append(layouts(engines, folder, options.layers, options.rounds, shim))
    mode = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip()
    about = (
        f"Linux {platform.release()}, {os.cpu_count()} CPUs, huge pages: {mode}; load {load:.1f} when it began and "
        f"{os.getloadavg()[0]:.1f} when it ended, {time.monotonic() - began:.0f} s in all; "
        f"{options.layers} layer{'s' * (options.layers > 1)}, {options.rounds} rounds.\n"
    )
    text = f"{about}\n## Rows\n\nThe kernel's own layout.\n\n{parts[0]}\n## Layouts\n\n{parts[1]}"
    print(text)
    if options.write:
        PAGE.write_text(HEAD.replace("LAYERS", str(options.layers)) + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
