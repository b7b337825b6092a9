"""PyTorch's kineto traces into tables: our reader beside HolisticTraceAnalysis and json.load, on one large file.

The file is a real capture copied on end (``_kineto_copies``). Every reading is a process of its own, the readers in
turn. CPU time is that of the whole process, imports with it, as the kernel counts it for a child; so is peak memory.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import _kineto_copies

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "kineto.md"
SOURCE = ROOT.parent / "shared" / "data" / "kineto" / "resnet50_num_workers_0.pt.trace.json.gz"
OURS = """
import sys
from pathlib import Path
from stepscope.readers.importers import registry
print(len(registry.read(Path(sys.argv[1])).events))
"""
HTA = """
import sys
from hta.common.trace import parse_trace_file
print(len(parse_trace_file(sys.argv[1])[1]))
"""
JSON = """
import json, sys
with open(sys.argv[1]) as file:
    print(len(json.load(file)["traceEvents"]))
"""
HEAD = """# Reading kineto traces, beside HTA

Printed by `make bench-kineto HTA=python-with-HolisticTraceAnalysis ARGS=--write`. A real capture
({source}), copied on end with times, ids and correlations moved on: {events:,}
events, {size:.0f} MB. Ours: the file to the tables of an op trace, all arguments among them; HTA {hta}:
`parse_trace_file`, which leaves most arguments out; `json.load`: Python's own, no table. Each reading is a process, and
the readers take turns; CPU time and peak memory are those of the whole process, imports with it.
Medians of {rounds} readings, with the least and the most; ratios are those of the same round, to ours. The CPUs are
shared, so wall time says nothing, and CPU time rises with the load of others, for all readers alike.

"""


def reading(python: str, program: str, file: Path) -> tuple[float, float, str]:
    """CPU time in s, peak memory in MB, and the number of events that one reader finds.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen([python, "-c", program, str(file)], stdout=said, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"{python}: {errors.read()[-500:]}")
        said.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, said.read().split()[-1]


def version(python: str, package: str) -> str:
    """The version of a package in an environment."""
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def spread(values: list[float], digits: int = 1) -> str:
    """Median, least and most."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main() -> int:
    """Measure, print, perhaps write the page."""
    parser = argparse.ArgumentParser(description="our reader of kineto traces beside HTA's")
    parser.add_argument("--hta", required=True, help="Python of an environment with HolisticTraceAnalysis")
    parser.add_argument("--source", type=Path, default=SOURCE, help="a real kineto trace")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the file that is made of it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the large file goes while it is needed")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    readers = {"stepscope": (sys.executable, OURS), "HTA": (options.hta, HTA), "json.load": (sys.executable, JSON)}
    found: dict[str, list[tuple[float, float, str]]] = {name: [] for name in readers}
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = Path(folder) / "copies.json"
        with ProcessPoolExecutor(1) as pool:  # a child's peak begins with the memory of its parent
            events = pool.submit(_kineto_copies.write, options.source, file, options.megabytes * 10**6).result()
        size = file.stat().st_size / 1e6
        for _ in range(options.rounds):
            for name, (python, program) in readers.items():
                found[name].append(reading(python, program, file))
                print(name, *found[name][-1], flush=True)
                load.append(os.getloadavg()[0])
    lines = ["| reader | CPU s | CPU, to ours | peak MB | peak, to the file | events |", "|---|---|---|---|---|---|"]
    ours = [cpu for cpu, *_ in found["stepscope"]]
    for name, readings in found.items():
        ratios = [cpu / own for (cpu, *_), own in zip(readings, ours, strict=True)]
        peaks = [peak for _, peak, _ in readings]
        lines.append(
            f"| {name} | {spread([cpu for cpu, *_ in readings])} | {spread(ratios)} | {spread(peaks, 0)} "
            f"| {median(peaks) / size:.2f} | {int(readings[0][2]):,} |"
        )
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("msgspec", "numpy"))
    python = ".".join(map(str, sys.version_info[:3]))
    lines += [
        "",
        f"Python {python}, {versions}. Load average {min(load):.0f} to {max(load):.0f} on {os.cpu_count()} CPUs.",
    ]
    text = HEAD.format(
        source=options.source.name,
        events=events,
        size=size,
        hta=version(options.hta, "HolisticTraceAnalysis"),
        rounds=options.rounds,
    )
    print("\n".join(lines))
    if options.write:
        PAGE.write_text(text + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
