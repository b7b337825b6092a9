"""A worker, a collector, the link, a whole host or the gathering server dies at a random moment: what have the others?

Three workers run ``programs/goes_on.py`` under ``stepscope run --clock-hosts``, each on a host of its own (``_hosts``,
``_whole_hosts``; by root), in a part of the runs with ``--gather`` to a server on a fourth. The program counts its
spans and times its steps in a mapped file, and waits for others for at most 100 ms, so that it can go on without them.

Kinds: worker (SIGKILL), collector (SIGKILL), link (host cut off, for 0.3 to 3 s), cut (until all have ended), host (all
its processes at once; its memory files are lost, as by a reboot), all (the same, memory files stay), server (SIGKILL);
to compare with: none (nothing dies), bare (a worker dies, without stepscope).

Runs are kept in ``--results`` with the digest of src/; what is there of the same tree is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

import _hosts
import _left_behind
import _member_judge
import _whole_hosts
from _hosts import Network
from _member_judge import Row
from _member_runs import ROOT, WORKERS, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _hosts import Host

RESULTS = ROOT / "build" / "member-kills.jsonl"
FAILED = ROOT / "build" / "member-kills"
TIMEOUT_S = 90.0
LATEST_S = {"worker": 5.0, "collector": 8.0, "link": 5.0, "cut": 5.0, "host": 8.0, "all": 8.0, "server": 10.0}
"""Moments of a kill are uniform from the start of the workers to this."""
ORDER = (
    *("worker", "collector", "link", "host", "worker+", "collector+", "cut", "all", "server+", "none"),
    *("worker", "collector", "link+", "host+", "worker+", "collector+", "cut", "all+", "server+", "bare"),
    *("worker", "collector"),
)
"""Kinds of the runs, in turn; "+": gathered."""
TRIES = 5
HEAD = (
    *("what died", "runs", "gathered", "others' records whole", "exit codes right", "nothing left", "opens", "named"),
    *("the victim lacks, worst", "longest step of the others, ms: median / worst", "own work, worst"),
)


def run(kind: str, number: int, seed: int, tree: str, beds: tuple[Sequence[Host], Path]) -> Row | None:
    """One run; None: what was to die had ended before."""
    chance = random.Random(seed)
    hosts, network = beds
    name, gathered = kind.removesuffix("+"), kind.endswith("+")
    folder = Path(tempfile.mkdtemp(prefix="member-kills-"))
    places = [_whole_hosts.made(host, folder) for host in hosts]
    one = Run(
        kind=name, gathered=gathered, hosts=places, folder=folder, network=network, victim=chance.randrange(WORKERS)
    )
    one.key.write_bytes(chance.randbytes(32))
    one.key.chmod(0o600)
    row: Row | None = None
    try:
        if gathered:
            one.start_server()
        begun = time.monotonic()
        one.start_workers()
        at_s = chance.uniform(0.0, LATEST_S.get(name, LATEST_S["worker"]))
        if name != "none":
            time.sleep(at_s)
            if not one.kill():
                return None
        if name == "link":
            time.sleep(chance.uniform(0.3, 3.0))
            _hosts.order(network, "mend", one.victim)
        ended = _all_ended(one)
        row = _member_judge.judged(one, tree=tree, number=number, at_s=at_s, ended=ended)
        return msgspec.structs.replace(row, took_s=time.monotonic() - begun)
    finally:
        one.stop()
        if row is not None and row.problems:
            FAILED.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder, FAILED / f"{row.tree}-{kind}-{number}", dirs_exist_ok=True)
        for path in (folder, *(place.memory for place in places)):
            shutil.rmtree(path, ignore_errors=True)


def _all_ended(one: Run) -> bool:
    """Wait for all workers' hosts."""
    until = time.monotonic() + TIMEOUT_S
    for job in one.jobs:
        try:
            job.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
    return True


def source_digest() -> str:
    """Digest of src/."""
    whole = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:8]


def kept(file: Path, tree: str) -> list[Row]:
    """Runs of a tree that were made."""
    lines = file.read_text().splitlines() if file.exists() else []
    rows = [msgspec.json.decode(line, type=Row) for line in lines]
    return [row for row in rows if row.tree == tree]


def table(rows: Sequence[Row]) -> list[str]:
    """The page's tables."""
    lines = [
        f"| {' | '.join(HEAD)} |",
        f"|---|{'---:|' * (len(HEAD) - 1)}",
    ]
    for kind in dict.fromkeys(name.removesuffix("+") for name in ORDER):
        mine = [row for row in rows if row.kind.removesuffix("+") == kind]
        if not mine:
            continue
        steps = [row.longest_step_ms for row in mine]
        cells = (
            *(kind, len(mine), sum(row.kind.endswith("+") for row in mine)),
            *(sum(row.whole for row in mine), sum(row.codes_right for row in mine), sum(not row.left for row in mine)),
            *(sum(row.opens for row in mine), sum(row.named for row in mine)),
            f"{max(row.lost_ms for row in mine):.0f} ms" if kind != "bare" else "-",
            *(f"{np.median(steps):.0f} / {max(steps):.0f}", f"{max(row.longest_own_ms for row in mine):.0f}"),
        )
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    lines += ["", f"Spans of all that were counted: {sum(row.counted for row in rows):,}."]
    lines += [f"- {row.kind} {row.number}, {row.at_s:.1f} s: {'; '.join(row.problems)}" for row in rows if row.problems]
    return lines


@_left_behind.nothing_stays()
def main() -> int:
    """Make the runs that are missing, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=110, help="with those that are kept")
    parser.add_argument("--numbers", default="", help="of the runs to make, 3,25; default: all")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--tree", default="", help="print what is kept of this tree")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # hosts are removed then, too
    if options.tree:
        sys.stdout.write("\n".join(table(kept(options.results, options.tree))) + "\n")
        return 0
    why = _hosts.why_not()
    if why:
        sys.stdout.write(f"not here: {why}\n")
        return 0
    options.results.parent.mkdir(parents=True, exist_ok=True)
    tree = source_digest()
    done = {row.number for row in kept(options.results, tree)}
    with (
        tempfile.TemporaryDirectory(prefix="member-kills-net-") as network,
        _hosts.hosts(WORKERS + 1, Network(), Path(network)) as hosts,
    ):
        wanted = [int(text) for text in options.numbers.split(",") if text] or range(options.runs)
        for number in wanted:
            if number not in done:
                _made(ORDER[number % len(ORDER)], number, options, tree, (hosts, Path(network)))
    rows = kept(options.results, tree)
    sys.stdout.write("\n".join(table(rows)) + "\n")
    return int(any(row.problems for row in rows))


def _made(kind: str, number: int, options: argparse.Namespace, tree: str, beds: tuple[Sequence[Host], Path]) -> None:
    """Make one run, and keep it."""
    for attempt in range(TRIES):
        row = run(kind, number, options.seed * 100_000 + number * TRIES + attempt, tree, beds)
        if row is None:
            continue
        with options.results.open("a") as file:
            file.write(msgspec.json.encode(row).decode() + "\n")
        said = "; ".join(row.problems) or "right"
        sys.stdout.write(f"{number} {kind} at {row.at_s:.1f} s, {row.took_s:.1f} s: {said} · {row.said}\n")
        sys.stdout.flush()
        return


if __name__ == "__main__":
    sys.exit(main())
