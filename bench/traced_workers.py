"""Do captures end workers with collective operations? Joint captures, one after the other, of two real workers.

Each job is MultiWorkerMirroredStrategy on this host (``tests/run/programs/members.py``), each worker under
``run``. A capture counts as one that ended the job if the job is gone after it. Busy cores make the fault likelier that
is looked for (docs/decisions/0084-split-activities.md): run something beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "run" / "programs" / "members.py"
STEPSCOPE = (sys.executable, "-m", "stepscope")
STEPS = 30
"""Steps after which a worker is traced for the first time."""
PATIENCE_S = 300.0


@dataclass(kw_only=True)
class Counts:
    """What became of the captures of all jobs."""

    taken: int = 0
    ended: int = 0
    """Captures after which the job was gone."""
    same: int = 0
    """Captures of which the workers had steps in common."""


def main() -> None:
    """Trace, and print the counts after each job."""
    parser = argparse.ArgumentParser(description="do captures end workers with collective operations?")
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--captures", type=int, default=10, help="of each job")
    arguments = parser.parse_args()
    counts = Counts()
    for number in range(arguments.jobs):
        with tempfile.TemporaryDirectory(prefix="stepscope-traced-") as folder:
            traced(Path(folder), arguments.captures, counts)
        said = f"{counts.taken} captures, {counts.same} of the same steps, {counts.ended} ended the job"
        print(f"{number + 1} jobs: {said}", flush=True)
    sys.exit(1 if counts.ended else 0)


def traced(folder: Path, captures: int, counts: Counts) -> None:
    """One job, until all captures are taken or it is gone."""
    told = folder / "told"
    run = (*STEPSCOPE, "run", "--budget", "0%", "--session", "w{index}.stepscope", "--")
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "SLOW_S": "0"}
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(told), *run], cwd=folder, env=quiet, stdout=nowhere, stderr=nowhere
    ) as job:
        for _ in range(captures):
            pids = workers(folder, job)
            if len(pids) <= 1:
                break
            asked = (*STEPSCOPE, "trace", str(pids[0]), "--steps", "5", "--force")
            done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            counts.taken += 1
            counts.same += "the same" in done.stdout and "steps of" in done.stdout
            if job.poll() is not None or len(workers(folder, job)) <= 1:
                counts.ended += 1
                break
        told.touch()
        job.wait(PATIENCE_S)


def workers(folder: Path, job: subprocess.Popen[bytes]) -> list[int]:
    """Pids of both workers once they make steps; fewer if one is gone."""
    until, seen = time.monotonic() + PATIENCE_S, False
    while time.monotonic() < until and job.poll() is None:
        done = subprocess.run((*STEPSCOPE, "ps", "--json"), capture_output=True, text=True, check=True)
        mine = [one for one in json.loads(done.stdout)["jobs"] if one["cwd"] == str(folder)]
        seen = seen or len(mine) > 1
        if seen and (len(mine) <= 1 or all(one["steps"] > STEPS for one in mine)):
            return [one["pid"] for one in mine]
        time.sleep(0.5)
    return []


if __name__ == "__main__":
    main()
