"""Does every mode of distributed training run under stepscope, and is its report right? Each for real, on this host.

Usage: modes.py [--only NAME,...] [--pythons PYTHON,...] [--write]

Each worker, server or rank runs under a ``stepscope run`` of its own, as on hosts of its own; programs are in
``programs/modes/``. Where members wait for each other, a second run makes member 1 sleep 30 ms in each step: it must be
named, and none in the first. What the joint report says is compared with what the program does. A mode runs with the
first of the Pythons that has its packages; one that none has is said to be not run. Results are kept in
``build/modes.json``, so that a few modes can run at a time; modes with a test in CI have a row that names it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import _left_behind
from _modes import MODES, Seen
from stepscope.report import json_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _modes import Mode

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "modes.md"
RESULTS = ROOT / "build" / "modes.json"
PROGRAMS = ROOT / "bench" / "programs" / "modes"
STEPSCOPE = (str(Path(sys.executable).with_name("stepscope")), "run")
PYTHONS = (sys.executable, str(ROOT / ".venv-tf215" / "bin" / "python"))
PATIENCE_S = 420.0
EQUAL, SLOW = "equal", "slow"
HEAD = """# Modes of distributed training

Printed by `make bench-modes ARGS=--write` (with `--pythons` for environments that have tf_keras, JAX or Horovod). Every
task runs under its own `stepscope run` on one host. Where members wait for each other, each program runs twice: with
equal members, of which none may be blamed (DST001, replicas: DST011), and with member 1 sleeping 30 ms in each step
(replica 1 computing more), which must be named.

| mode | versions | program | checked | result |
|---|---|---|---|---|
"""
NOTES = """
What a mode can not show:

- *Keras 3 `fit` under MultiWorkerMirroredStrategy* ends with a ValueError at its first step, without stepscope too
  (keras-team/keras#20585): use tf_keras (`TF_USE_LEGACY_KERAS=1`), a loop of your own, or Keras on JAX.
- *JAX*: its own calls are not recorded. `stepscope.step()` marks the steps; a `stepscope.span()` around the call that
  trains is what members are compared by. Without marks the report says "no steps seen".
- *Horovod* exchanges on a thread of its own, of which TensorFlow's op trace shows nothing: a rank alone counts its wait
  and the exchange as compute ("not scheduled" in traced steps); the joint report tells waits and exchange apart.
- *Horovod's timeline* (`stepscope import`) is written by rank 0 alone; from the second step on, its cache of responses
  leaves out which rank came when (`HOROVOD_CACHE_CAPACITY=0` keeps it). The members' own reports do not need it.
- *MirroredStrategy*: replicas are threads of one process, and no members. Which of them the others wait for is said
  from an op trace of at least five steps.
"""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the page."""

    versions: str
    checked: list[str]
    failed: list[str]


VERSIONS = """
import sys
from importlib.metadata import packages_distributions, version
found = packages_distributions()
for need in sys.argv[1:]:
    name, old, less = need.partition("<")
    name, new, least = name.partition(">=")
    said = version(found[name][0])
    number = tuple(int(part) for part in said.split(".")[:2])
    if old and number >= tuple(map(int, less.split("."))) or new and number < tuple(map(int, least.split("."))):
        sys.exit(1)
    print(name, said)
"""


def python_with(needs: Sequence[str], pythons: Sequence[str]) -> tuple[str, str]:
    """The first Python that has the packages, and their versions; "" if none has."""
    for python in pythons:
        if Path(python).exists():
            done = subprocess.run([python, "-c", VERSIONS, *needs], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return python, ", ".join(done.stdout.split("\n")).rstrip(", ")
    return "", ""


def run(mode: Mode, python: str, folder: Path, *, slow: bool) -> Seen:
    """One job: all tasks, until those that train have ended."""
    folder.mkdir()
    assert mode.tasks is not None
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    beside = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    tasks, started = mode.tasks(("1",) if slow else ()), []
    for number, task in enumerate(tasks):
        before = (str(Path(python).with_name(mode.launcher[0])), *mode.launcher[1:]) if mode.launcher else ()
        own = () if mode.launcher else ("--session", f"task-{number}.stepscope")
        command = [*before, *STEPSCOPE, *own, "--", python, str(PROGRAMS / mode.program), *task.words]
        with (folder / f"task-{number}.txt").open("w") as out:
            env = {**os.environ, **quiet, "PATH": beside, **task.env}
            started.append(subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT))
    codes = []
    try:
        codes = [process.wait(PATIENCE_S) for task, process in zip(tasks, started, strict=True) if not task.serves]
    finally:
        for process in started:
            process.terminate()
            process.wait(PATIENCE_S)
    sessions = sorted(path for path in folder.glob("*.stepscope") if (path / "report.json").exists())
    joint = [path for path in sessions if path.name.endswith("-job.stepscope")]
    return Seen(
        codes=codes,
        alone=[json_report.decode((path / "report.json").read_bytes()) for path in sessions if path not in joint],
        joint=[json_report.decode((path / "report.json").read_bytes()) for path in joint],
        text="".join(path.read_text(errors="replace") for path in sorted(folder.glob("task-*.txt"))),
    )


def measure(mode: Mode, python: str, versions: str, kept: Path | None) -> Result:
    """Run a mode with equal members, and with a slow one; the facts of both."""
    checked: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="stepscope-modes-", ignore_cleanup_errors=True) as scratch:
        for slow in (False, True) if mode.slows else (False,):
            which = SLOW if slow else EQUAL
            try:
                seen = run(mode, python, Path(scratch) / which, slow=slow)
            except subprocess.TimeoutExpired:
                checked[f"it ends ({which})"] = False
                continue
            finally:
                if kept is not None:
                    shutil.copytree(Path(scratch) / which, kept / f"{mode.name}-{which}", dirs_exist_ok=True)
            assert mode.check is not None
            for fact, holds in mode.check(seen, slow=slow).items():
                checked[fact] = checked.get(fact, True) and holds
    failed = [fact for fact, holds in checked.items() if not holds]
    return Result(versions=versions, checked=list(checked), failed=failed)


def row(mode: Mode, result: Result | None) -> str:
    """The mode's row of the page."""
    if mode.tested:
        return f"| {mode.title} | that of CI | `{mode.program}` | {mode.tested} | in CI |"
    program = f"`programs/modes/{mode.program}`"
    if result is None:
        return f"| {mode.title} | - | {program} | - | never run |"
    said = "right" if result.checked else f"not run: no Python here has {' and '.join(mode.needs)}"
    if result.failed:
        said = f"**wrong**: {'; '.join(result.failed)}"
    return f"| {mode.title} | {result.versions or '-'} | {program} | {'; '.join(result.checked) or '-'} | {said} |"


@_left_behind.nothing_stays()
def main() -> int:
    """Run the modes and print the page."""
    parser = argparse.ArgumentParser(
        description="does every mode of distributed training run, and is its report right?"
    )
    parser.add_argument(
        "--only", default="", help=f"of {', '.join(mode.name for mode in MODES if mode.tasks)}; or none"
    )
    parser.add_argument("--pythons", default="", help="further Pythons, separated by commas")
    parser.add_argument("--keep", type=Path, help="folder for the sessions")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/modes.md")
    options = parser.parse_args()
    results = msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, Result]) if RESULTS.exists() else {}
    chosen = options.only.split(",") if options.only else [mode.name for mode in MODES]
    pythons = [*PYTHONS, *filter(None, options.pythons.split(","))]
    RESULTS.parent.mkdir(exist_ok=True)
    for mode in MODES:
        if mode.tasks is None or mode.name not in chosen:
            continue
        python, versions = python_with(mode.needs, pythons)
        empty = Result(versions="", checked=[], failed=[])
        results[mode.name] = measure(mode, python, versions, options.keep) if python else empty
        RESULTS.write_bytes(msgspec.json.encode(results))
        print(row(mode, results[mode.name]), file=sys.stderr, flush=True)
    load = (
        f"\n{os.cpu_count()} cores; load {os.getloadavg()[2]:.1f} in the last quarter of an hour, in part the jobs.\n"
    )
    page = HEAD + "\n".join(row(mode, results.get(mode.name)) for mode in MODES) + "\n" + NOTES + load
    print(page)
    if options.write:
        PAGE.write_text(page)
    return 1 if any(result.failed for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
