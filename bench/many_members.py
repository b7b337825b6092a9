"""How do pairing the steps of many members and blaming the slowest grow with their number?

Usage: many_members.py [--write]

Scripted jobs: each member has its own time in each step, one is a straggler, clocks are apart by a day and drift by up
to 50 ppm. Each size runs in a separate process, for its peak of memory. The answer is compared with the truth.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from stepscope.derive.cluster import blame, clock, pairing
from stepscope.derive.cluster.member_calls import MemberCalls

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "many-members.md"
SIZES = ((2, 10_000), (10, 10_000), (100, 10_000), (1_000, 1_000), (1_000, 10_000))
STRAGGLER_MS = 3.0
HEAD = """# Many members

Printed by `make bench-members ARGS=--write`: scripted synchronous jobs with one straggler, paired and blamed
(`derive.cluster`). *Clocks*: known, or unknown (a day apart, drifting by up to 50 ppm; the rhythm of the steps
decides). *Blame*: extra time of the straggler as found, of 3 ms; *others*: the most of any other member.

"""


def members(count: int, steps: int, *, apart: bool) -> list[MemberCalls]:
    """A job with steps of about 12 ms; member 1 takes 3 ms more."""
    rng = np.random.default_rng(count)
    own = (1e6 + np.abs(rng.normal(0, 1e5, (count, steps)))).astype(np.int64)
    own[1] += int(STRAGGLER_MS * 1e6)
    transfer = (8e6 + rng.exponential(1e6, steps)).astype(np.int64)
    exits = np.cumsum(own.max(axis=0) + transfer)
    before = np.concatenate([[0], exits[:-1]])
    usable = np.ones(steps, bool)
    usable[0] = False
    found = []
    for j in range(count):
        rate, off = (1 + rng.uniform(-5e-5, 5e-5), 86_400_000_000_000 * j) if apart else (1.0, 0)
        entries, ends = ((times * rate).astype(np.int64) + off for times in (before + own[j], exits))
        found.append(MemberCalls(name="train_step", entries=entries, exits=ends, usable=usable))
    return found


def one(count: int, steps: int, *, apart: bool) -> str:
    """A row of the table."""
    job = members(count, steps, apart=apart)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    paired = pairing.pair(job, [None if apart and j else clock.same() for j in range(count)])
    middle = time.perf_counter()
    found = blame.build(job, paired)
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if found is None:
        raise RuntimeError("no common steps")
    others = max(found.blame_median_ns[j] for j in range(count) if j != 1)
    return (
        f"| {count:,} | {steps:,} | {'unknown' if apart else 'known'} | {sum(paired.synchronous):,} "
        f"| {middle - began:.2f} s | {ended - middle:.2f} s | {peak:.0f} MB ({base:.0f} before) "
        f"| {found.blame_median_ns[1] / 1e6:.2f} ms | {others / 1e6:.2f} ms |"
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="pairing and blame of many members")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/many-members.md")
    options = parser.parse_args()
    if options.one:
        count, steps, apart = options.one
        print(one(int(count), int(steps), apart=apart == "apart"))
        return 0
    rows = [
        "| members | steps | clocks | synchronous | pairing | blame | peak memory | blame | others |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for count, steps in SIZES:
        for clocks in ("same", "apart"):
            command = [sys.executable, __file__, "--one", str(count), str(steps), clocks]
            rows.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
            print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(rows))
    if options.write:
        PAGE.write_text(HEAD + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
