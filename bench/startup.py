"""The cost of ``stepscope enable`` to a process without TensorFlow: ``python -c pass`` with and without, interleaved.

Usage: startup.py [--pairs N] [--python PATH ...] [--write]

Each pair starts the same Python once in a virtual environment that is enabled and once in one that is not, in changing
order; the environments are alike but for the .pth file. The cost is the median of the differences, with a bootstrap
interval. ``--write`` puts the table into docs/benchmarks/startup.md.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _stats import bootstrap
from stepscope.collector.always_on import pth_file

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "startup.md"
HEAD = """# What `enable` costs a process without TensorFlow

Printed by `make bench-startup ARGS=--write`: `python -c pass` in two virtual environments that are alike but for the
.pth file of `stepscope enable`, interleaved. The difference is the median over pairs with its 95 % interval. `enable`
has left compiled files, as it always does where it may. The benchmark goes before other programs (SCHED_RR).

```text
"""
BUDGET_MS = 1.0


def environment_of(python: str, folder: Path, *, enable: bool) -> str:
    """A virtual environment's Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    inside = str(folder / "bin" / "python")
    found = pth_file.find_environment(inside)
    (found.site_packages / "any.pth").write_text("# so that both read a .pth file\n")
    if enable:
        package = str(Path(pth_file.__file__).resolve().parents[2])
        pth_file.write(found, pth_file.Settings(python=sys.executable, package=package))
    return inside


def seconds(python: str, environment: dict[str, str]) -> float:
    """Wall time of one start."""
    started = time.perf_counter()
    subprocess.run([python, "-c", "pass"], check=True, env=environment)
    return time.perf_counter() - started


def measure(python: str, pairs: int) -> str:
    """One row of the table."""
    chance = random.Random(1)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STEPSCOPE"))}
    with tempfile.TemporaryDirectory() as folder:
        plain = environment_of(python, Path(folder) / "plain", enable=False)
        armed = environment_of(python, Path(folder) / "armed", enable=True)
        without: list[float] = []
        differences: list[float] = []
        for _ in range(pairs):
            order = [plain, armed]
            chance.shuffle(order)
            taken = {name: seconds(name, environment) for name in order}
            without.append(taken[plain])
            differences.append(taken[armed] - taken[plain])
    cost = bootstrap([1e3 * d for d in differences])
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    good = "yes" if cost.high < BUDGET_MS else "no"
    return (
        f"{version:<10} {pairs:>6} {1e3 * median(without):>10.2f} {cost.value:>+12.3f} "
        f"({cost.low:+.3f} to {cost.high:+.3f})   {good}"
    )


def undisturbed() -> None:
    """Raise our priority over other programs, if allowed: they would be measured too."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("without the right to a higher priority: what else runs is in the figures", file=sys.stderr)


def main() -> None:
    """Measure every Python and print the table."""
    undisturbed()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--python", action="append", metavar="PATH")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = [f"{'python':<10} {'pairs':>6} {'without ms':>10} {'enable adds ms (95 %)':>30}   under 1 ms"]
    print(lines[0])
    for python in options.python or [sys.executable]:
        lines.append(measure(python, options.pairs))
        print(lines[-1], flush=True)
    if options.write:
        PAGE.write_text(HEAD + "\n".join(lines) + "\n```\n")


if __name__ == "__main__":
    main()
