"""Stacks: how fast files are folded, and how much profiles of one program differ between runs.

Usage: stacks.py [folding] [symbols] [noise] [windows] [--flamegraph FOLDER] [--rounds N] [--samples N] [--runs N]
[--windows N] [--write]

folding: CPU time from the text of ``perf script`` to folded stacks, interleaved with stackcollapse-perf.pl where a
clone of brendangregg/FlameGraph is given. The text is made: 24 frames a sample, some 20,000 different stacks, leaf
addresses that hardly repeat. A session's profile of as many stacks and a million samples is folded besides.

symbols: CPU time of reading TensorFlow's symbols.

noise: one program is recorded again and again (perf record -e cpu-clock -F 199). Printed: how much more the counts of a
function vary than independent samples of the same share, how much the run's CPU time varies, and in how many pairs of
runs ``stepscope flame diff`` sees a difference where there is none.

windows: what windows of native stacks cost the throughput of a training (``_windows``).

``--write`` puts the tables into docs/benchmarks/stacks.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from _windows import Symbols, windows
from stepscope.derive.stacks.merge_profiles import function_of, paired
from stepscope.derive.stacks.profile_difference import DISPERSION, HOST_SPREAD, difference
from stepscope.readers.stacks import detect
from stepscope.store import stacks
from stepscope.tables.stacks import StackProfile

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "stacks.md"
PROGRAM = Path(__file__).with_name("programs") / "mixed_work.py"
HEAD = """# Folding stacks, reading symbols, the noise of profiles, and what windows cost

Printed by `make bench-stacks ARGS="--flamegraph CLONE --write"`. Rates and spreads belong to the machine, ratios carry
over.

"""
PARTS = ("folding", "symbols", "noise", "windows")
TEN_TIMES, MILLION = 10, 1e6
SYMBOLS_CPU_S = 0.5


# ---- folding


def make_text(path: Path, samples: int) -> None:
    """Text as ``perf script`` prints it."""
    rng = random.Random(1)
    functions = [
        f"tensorflow::Executor{i}::Process{i % 37}(tensorflow::OpKernelContext*, long)" if i % 3 else f"_function_{i}"
        for i in range(3000)
    ]
    modules = ("/venv/lib/tensorflow/libtensorflow_cc.so.2", "/usr/lib/libc.so.6", "[kernel.kallsyms]")

    def frame(number: int, near: int) -> str:
        address = 0x7F0000000000 + number * 4096 + near * 64
        return f"\t{address:>16x} {functions[number]}+0x{near * 64:x} ({modules[number % 3]})\n"

    inner = [[(rng.randrange(3000), rng.randrange(4)) for _ in range(12)] for _ in range(22_000)]
    outer = ["".join(frame((12 * i + j) % 3000, 1) for j in range(12)) for i in range(50)]
    with path.open("w") as stream:
        for i in range(samples):
            chain = inner[min(int(rng.paretovariate(0.5)), 21_999)]
            head = f"tf_Compute 4000/{4000 + i % 8} [00{i % 4}] {1000 + i / 10_000:.6f}:    1001001 cpu-clock: \n"
            leaf = frame(chain[0][0], rng.randrange(64))
            stream.write(head + leaf + "".join(frame(*one) for one in chain[1:]) + outer[chain[1][0] % 50] + "\n")


def cpu_seconds(command: list[str], output: Path) -> float:
    """CPU time of a command, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with output.open("wb") as stream:
        subprocess.run(command, check=True, stdout=stream)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


OURS = (
    "import sys; from pathlib import Path; from stepscope.readers.stacks import detect, folded; "
    "sys.stdout.buffer.write(folded.write(detect.read_file(Path(sys.argv[1]))[0]))"
)


STORED = (
    "import sys; from pathlib import Path; from stepscope.readers.stacks import folded; from stepscope.store import "
    "stacks; sys.stdout.buffer.write(folded.write(stacks.decode(Path(sys.argv[1]).read_bytes())))"
)
STORED_SAMPLES = 1_000_000


def make_stored(path: Path, text: Path) -> None:
    """A session's profile: the stacks of the text, sampled a million times."""
    profile = detect.read_file(text)[0]
    rng = np.random.default_rng(1)
    rows = profile.samples.take(rng.integers(0, len(profile.samples), STORED_SAMPLES))
    path.write_bytes(stacks.encode(replace(profile, samples=rows)))


def folding(options: argparse.Namespace) -> str:
    """The table of folding."""
    script = options.flamegraph / "stackcollapse-perf.pl" if options.flamegraph else None
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "perf.txt"
        make_text(text, options.samples)
        megabytes = text.stat().st_size / 1e6
        theirs: list[float] = []
        ours: list[float] = []
        empty = Path(folder) / "empty.txt"
        empty.write_text("a 1\n")
        start = median(cpu_seconds([sys.executable, "-c", OURS, str(empty)], Path(folder) / "x") for _ in range(5))
        for _ in range(options.rounds):
            ours.append(cpu_seconds([sys.executable, "-c", OURS, str(text)], Path(folder) / "ours.folded"))
            if script:
                theirs.append(cpu_seconds(["perl", str(script), str(text)], Path(folder) / "theirs.folded"))
        stored = Path(folder) / "cpu-0001.parquet"
        make_stored(stored, text)
        starts_stored = Path(folder) / "empty.parquet"
        starts_stored.write_bytes(stacks.encode(detect.read_file(empty)[0]))
        command = [sys.executable, "-c", STORED]
        binary = [cpu_seconds([*command, str(stored)], Path(folder) / "x") for _ in range(options.rounds)]
        starting = median(cpu_seconds([*command, str(starts_stored)], Path(folder) / "x") for _ in range(3))
        if script:
            compare_folded(Path(folder) / "ours.folded", Path(folder) / "theirs.folded")
    rows = ["reader                   CPU-s    samples/s      MB/s"]
    for name, taken in (("stepscope", ours), ("stackcollapse-perf.pl", theirs)):
        if taken:
            seconds = median(taken)
            rows.append(f"{name:<22} {seconds:>7.2f} {options.samples / seconds:>12,.0f} {megabytes / seconds:>9.0f}")
    rate = STORED_SAMPLES / (median(binary) - starting)
    enough = "yes" if rate >= MILLION else "no"
    rows.append(
        f"\nbinary, of a session: {rate:,.0f} samples/s behind {starting:.2f} CPU-s of start; a million: {enough}"
    )
    rows.append(f"of stepscope's, {start:.2f} CPU-s are Python's start and imports")
    if theirs:
        ratios = sorted(slow / fast for slow, fast in zip(theirs, ours, strict=True))
        good = "yes" if median(ratios) >= TEN_TIMES else "no"
        rows.append(f"ratio {median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}); ten times: {good}")
    lines = (
        f"{options.samples:,} samples of 24 frames, {megabytes:.0f} MB of `perf script`'s text, medians of "
        f"{options.rounds} rounds in turn."
    )
    if theirs:
        lines += " Both write folded stacks, and they say the same."
    return f"## Folding\n\n{lines}\n\n```text\n" + "\n".join(rows) + "\n```\n"


def compare_folded(ours: Path, theirs: Path) -> None:
    """Check that both tools agree: weights by leaf, names without arguments and marks."""

    def leaves(path: Path) -> Counter[str]:
        found: Counter[str] = Counter()
        for line in path.read_text().splitlines():
            stack, _, weight = line.rpartition(" ")
            found[stack.rpartition(";")[2].partition("(")[0].removesuffix("_[k]")] += int(weight)
        return found

    if leaves(ours) != leaves(theirs):
        raise SystemExit("the two tools do not fold alike")


# ---- symbols

READ_SYMBOLS = "import msgspec, sys, _windows; sys.stdout.buffer.write(msgspec.json.encode(_windows.symbol_load()))"


def symbols(options: argparse.Namespace) -> str:
    """The table of symbols: every reading in a separate process."""
    command = [sys.executable, "-c", READ_SYMBOLS]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    outputs = [subprocess.check_output(command, env=environment) for _ in range(options.rounds)]
    found = sorted(msgspec.json.decode(output, type=Symbols) for output in outputs)
    middle = found[len(found) // 2]
    enough = "yes" if middle.cpu_s <= SYMBOLS_CPU_S else "no"
    lines = f"All of `libtensorflow_cc.so.2`, and a thousand addresses named; median of {len(found)} processes."
    return (
        f"## Symbols\n\n{lines}\n\n```text\n{middle.functions:,} functions: {middle.cpu_s:.2f} CPU-s "
        f"({found[0].cpu_s:.2f} to {found[-1].cpu_s:.2f}); at most {SYMBOLS_CPU_S:g}: {enough}\n```\n"
    )


# ---- noise


def record(folder: Path, number: int) -> StackProfile:
    """One run of the program as a profile of innermost frames."""
    data, text = folder / "perf.data", folder / f"run{number}.txt"
    event = ["-e", "cpu-clock", "-F", "199"]
    subprocess.run(["perf", "record", "-q", *event, "-o", str(data), sys.executable, str(PROGRAM)], check=True)
    fields = "comm,pid,tid,time,event,ip,sym,dso"
    with text.open("wb") as stream:
        command = ["perf", "script", "--no-inline", "-i", str(data), "-F", fields]
        subprocess.run(command, check=True, stdout=stream, stderr=subprocess.DEVNULL)
    return detect.read_file(text)[0]


def counts_of(profile: StackProfile) -> Counter[str]:
    """Samples by innermost function."""
    return Counter(profile.frames_of(stack)[-1].function for stack in profile.samples.stack.tolist() if stack >= 0)


def noise(options: argparse.Namespace) -> str:
    """The table of noise."""
    if shutil.which("perf") is None:
        return "## Noise\n\nNot measured: no perf on this machine.\n"
    with tempfile.TemporaryDirectory() as folder:
        profiles = [record(Path(folder), i) for i in range(options.runs)]
    runs = [counts_of(profile) for profile in profiles]
    sizes = np.array([run.total() for run in runs], np.float64)
    spreads = []
    for name in {name for run in runs for name in run}:
        counts = np.array([run[name] for run in runs], np.float64)
        share = counts.sum() / sizes.sum()
        if counts.mean() >= 3:
            expected = sizes * share
            spreads.append(float(((counts - expected) ** 2 / (expected * (1 - share))).sum() / (len(runs) - 1)))
    spreads.sort()
    pairs = list(itertools.combinations(profiles, 2))
    alarms = sum(difference(paired(*pair, same=function_of)).significant for pair in pairs)
    host = sizes.std(ddof=1) / sizes.mean()
    rows = (
        f"functions with 3 samples a run or more     {len(spreads)}",
        f"variance / that of independent samples     {median(spreads):.2f} in the median, {spreads[-1]:.2f} at most",
        f"allowed for                                {DISPERSION:g}",
        f"CPU time of a run, standard deviation      {100 * host:.1f} %, allowed for {100 * HOST_SPREAD:.0f} %",
        f"pairs of runs that show a difference       {alarms} of {len(pairs)}, promised 5 % at most",
    )
    lines = f"{options.runs} runs of bench/programs/mixed_work.py, {sizes.mean():.0f} samples each in the mean."
    return f"## Noise\n\n{lines}\n\n```text\n" + "\n".join(rows) + "\n```\n"


def cost_of_windows(options: argparse.Namespace) -> str:
    """The table of windows."""
    return windows(options.windows)


def _sections(page: str) -> dict[str, str]:
    """The tables of the page by part: those not remade stay."""
    sections = {text.partition("\n")[0].lower(): f"## {text}".rstrip() + "\n" for text in page.split("\n## ")[1:]}
    return {part: sections[part] for part in PARTS if part in sections}


def main() -> int:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description="how fast stacks are folded, and how much profiles vary")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], help="default: all")
    parser.add_argument("--flamegraph", type=Path, help="a clone of https://github.com/brendangregg/FlameGraph")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--windows", type=int, default=8, help="of each rate")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/stacks.md")
    options = parser.parse_args()
    makers = {"folding": folding, "symbols": symbols, "noise": noise, "windows": cost_of_windows}
    tables = {part: makers[part](options) for part in options.parts or PARTS}
    page = HEAD + "\n".join(tables.values())
    print(page)
    if options.write:
        PAGE.write_text(HEAD + "\n".join({**_sections(PAGE.read_text()), **tables}.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
