"""Does a job end under stepscope as it ends without? Pairs of runs of tiny programs that end in many ways.

Each pair is one run without and one under ``stepscope run``, in an order by chance, on cores that are free or full.
Compared are exit code or signal, output, standard error, files, and the time from the program's last line to the end of
its process (the launcher's is not waited for). On free cores one pair runs at a time, on full ones ``--jobs``, and
programs of the lowest priority take what these leave.

What has been run is kept in ``--results`` for each state of the agent's, the wire's and the collector's sources, and
not run again. ``--python`` names the interpreters of the jobs; which frameworks each has is asked. Root has a /dev/shm
of its own for the bench, so that all that is left there is ours.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import _endings_page
from _endings_page import Results, Row
from _endings_plan import ALL, KINDS, LOADS, Pair, plan
from _endings_run import Ended, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "endings.md"
RESULTS = ROOT / "build" / "endings.jsonl"
PYTHONS = "STEPSCOPE_BENCH_PYTHONS"
"""Interpreters of the jobs, separated by colons."""
CHUNK = 40
"""Pairs between two changes of the load."""
SOURCES = ("agent", "wire", "clocks", "collector", "launcher", "machine", "native", "sandbox")
NEEDS = {"onnxruntime": "onnx"}
"""What the programs of a framework import besides."""
_OWN_SHM = "ENDINGS_SHM"


def sources(tree: Path) -> str:
    """The state of what runs in a job or acts on it."""
    found = hashlib.sha256()
    for path in sorted(path for name in SOURCES for path in (tree / "src" / "stepscope" / name).rglob("*")):
        if path.suffix in (".py", ".c"):
            found.update(f"{path.relative_to(tree)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def interpreters(pythons: Sequence[str]) -> dict[str, list[str]]:
    """Interpreters by framework, as far as they have it."""
    needs = {name: [name, NEEDS.get(name, name)] for name in ALL if name != "python"} | {"python": []}
    code = f"import importlib.util as u; print(*(n for n, m in {needs}.items() if all(map(u.find_spec, m))))"
    found: dict[str, list[str]] = defaultdict(list)
    for python in pythons:
        names = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for name in names:
            found[name].append(python)
    return found


def run(pair: Pair, stepscope: Sequence[str], state: str) -> Row:
    """Run a pair; its row."""
    ended: dict[bool, Ended] = {}
    for measured in (pair.measured_first, not pair.measured_first):
        folder = Path(tempfile.mkdtemp(prefix="endings-"))
        try:
            ended[measured] = Run(pair, stepscope if measured else (), folder / "run").ended()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return Row(
        sources=state,
        pair=pair.name,
        kind=pair.kind,
        words=" ".join(word for word in pair.way.words if word != "{framework}"),
        framework=pair.framework,
        python=pair.python,
        load=pair.load,
        cores=len(os.sched_getaffinity(0)),
        sent=f"{pair.way.sends} to {pair.way.to}" if pair.way.sends else "",
        without=ended[False],
        under=ended[True],
    )


@contextlib.contextmanager
def busy(load: str) -> Iterator[None]:
    """Fill the cores with programs that compute, if the load is to be full; they end with the bench."""
    command = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "19", "/bin/sh", "-c", "while :; do :; done"]
    spinning = [subprocess.Popen(command) for _ in os.sched_getaffinity(0)] if load == "full" else []
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def shared() -> set[str]:
    """Names in /dev/shm."""
    return {str(path) for path in Path("/dev/shm").iterdir()}


def campaign(pairs: Sequence[Pair], results: Results, state: str, options: argparse.Namespace) -> None:
    """Run what is missing, in parts of one load each."""
    stepscope = [str(options.tree / ".venv" / "bin" / "stepscope")]
    for at in range(0, len(pairs), CHUNK):
        for load in LOADS:
            part = [one for one in pairs[at : at + CHUNK] if one.load == load and one.name not in results.known()]
            there = shared()
            with busy(load if part else ""), ThreadPoolExecutor(options.jobs if load == "full" else 1) as executor:
                for row in executor.map(lambda one: run(one, stepscope, state), part):
                    results.add(row)
            if left := sorted(shared() - there):
                results.add(Row(sources=state, left=tuple(left)))


def own_shm() -> None:
    """Begin again with a /dev/shm of its own, if root."""
    if os.getuid() or os.environ.get(_OWN_SHM) or shutil.which("unshare") is None:
        return
    os.environ[_OWN_SHM] = "1"
    mount = 'mount -t tmpfs endings /dev/shm; exec "$@"'
    os.execvp("unshare", ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, *sys.argv])


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default=",".join(KINDS), help="kinds, separated by commas")
    parser.add_argument("--runs", type=int, default=0, help="pairs of each kind; default: what each is planned to have")
    parser.add_argument("--python", default=os.environ.get(PYTHONS, sys.executable).replace(":", ","))
    parser.add_argument("--framework", default=",".join(ALL), help="frameworks, separated by commas")
    parser.add_argument("--only", default="", help="only pairs whose program and words have this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="1/1", help="I/N: each Nth pair, from the Ith on")
    parser.add_argument("--load", choices=LOADS, help="only pairs on free, or on full cores")
    parser.add_argument(
        "--jobs", type=int, default=3 * len(os.sched_getaffinity(0)), help="pairs at once on full cores"
    )
    parser.add_argument("--tree", type=Path, default=ROOT, help="a checkout whose .venv has the stepscope that is run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--carry", metavar="STATE", help="only take over rows of another state: --kind, --framework, --python say which"
    )
    parser.add_argument("--estimate", action="store_true", help="only print what the plan would take")
    parser.add_argument("--page", action="store_true", help=f"only write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--differ", action="store_true", help="only print the rows that differ, whole")
    parser.add_argument("--before", type=Path, help="results of sources that hang, for the page")
    return parser.parse_args()


def main() -> None:
    """Run what is missing, and print or write the page."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started us in the background
    options = parsed()
    state = sources(options.tree)
    results = Results(options.results, state)
    before = _endings_page.read(options.before) if options.before else []
    if options.differ:
        print(_endings_page.as_json(results.rows))
    elif options.carry:
        wanted = [(name, str(getattr(options, name)).split(",")) for name in ("kind", "framework", "python")]
        number = results.carry(options.carry, lambda row: all(getattr(row, name) in some for name, some in wanted))
        print(f"{number} rows of {options.carry} are now also of {state}")
    elif options.estimate:
        print(_endings_page.estimate(results.rows))
    elif options.page:
        _endings_page.store(PAGE, _endings_page.page(results.rows, before))
    else:
        own_shm()
        found = interpreters(options.python.split(","))
        pythons = {name: found[name] for name in options.framework.split(",") if name in found}
        for name in ALL:
            print(f"{name}: {', '.join(pythons.get(name, ())) or 'no interpreter has it'}")
        first, number = map(int, options.shard.split("/"))
        pairs = plan(pythons, options.kind.split(","), options.runs, options.seed)[first - 1 :: number]
        pairs = [one for one in pairs if options.load in (None, one.load) and options.only in " ".join(one.way.words)]
        campaign(pairs, results, state, options)
        print(_endings_page.page(results.rows, before))


if __name__ == "__main__":
    main()
