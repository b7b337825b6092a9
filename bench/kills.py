"""Kills the job, or the sidecar, at random moments and checks what every session still holds.

The job counts in a mapped file the spans that it has ended, with the moment of each of the newest; a session is right
when it opens and lacks none but those of the last 100 ms before the kill. For a killed sidecar the job must end as
without the kill, a new sidecar must be there within 1 s, and what was lost must be stated.

Usage: kills.py [--rounds 50] [--tf PYTHON] [--seed 1]

``--tf`` names a Python with TensorFlow: then the job is a Keras training in that Python.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import _left_behind
from stepscope.derive.steps import gaps
from stepscope.model.session.session import Worker
from stepscope.sessions.bundle import open_session
from stepscope.tables.errors import StepscopeError
from stepscope.wire.kinds import Kind

SOURCE = Path(__file__).resolve().parent.parent / "src"
COUNT = struct.Struct("<qq")
JOB = """
import mmap, struct, sys, time
with open("count", "w+b") as file:
    file.write(bytes(16 << 12)); file.flush()
    count = mmap.mmap(file.fileno(), 16 << 12)
def ended(number, pack=struct.Struct("<qq").pack_into):
    pack(count, 16 * (number % (1 << 12)), number, time.monotonic_ns())
"""
STEPS = """
import stepscope
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[1])
number = 0
while time.monotonic() < end:
    with stepscope.span("work"):
        time.sleep(0.0005)
    number += 1
    ended(number)
print("done", flush=True)
"""
KERAS = """
import numpy as np, tensorflow as tf
class Count(tf.keras.callbacks.Callback):
    number = 0
    def on_train_batch_end(self, batch, logs=None):
        Count.number += 1
        ended(Count.number)
        if Count.number == 1:
            print("ready", flush=True)
            Count.end = time.monotonic() + float(sys.argv[1])
        if time.monotonic() > Count.end:
            self.model.stop_training = True
model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.rand(4096, 16).astype("f4")
model.fit(x, x.sum(1), batch_size=32, epochs=100000, verbose=0, callbacks=[Count()])
print("done", flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One kill."""

    opened: bool
    counted: int
    stored: int
    lost_ms: float
    """Time from the end of the oldest missing span to the kill; 0 if none is missing."""
    back_s: float = 0.0
    job_unharmed: bool = True
    stated: bool = True


def start(folder: Path, python: str, text: str, seconds: float) -> subprocess.Popen[str]:
    """Start a job under stepscope and wait until it is in its loop."""
    (folder / "job.py").write_text(text)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "stepscope",
            "run",
            "-q",
            "--session",
            "s.stepscope",
            "--",
            python,
            "job.py",
            str(seconds),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if process.stdout is None or process.stdout.readline() != "ready\n":
        raise SystemExit("the job did not start")
    return process


def children(pid: int) -> dict[int, bool]:
    """Children of the launcher, and whether each is its sidecar."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except FileNotFoundError:
            continue
        found[int(child)] = b"stepscope.sidecar.sidecar" in command
    return found


def sidecar(pid: int, *, other_than: int = 0) -> int:
    """Wait for the launcher's sidecar."""
    while True:
        for child, is_sidecar in children(pid).items():
            if is_sidecar and child != other_than:
                return child
        time.sleep(0.002)


def judge(folder: Path, kind: Kind, killed_ns: int) -> Round:
    """Compare the session with the job's own count."""
    ended = dict(COUNT.iter_unpack((folder / "count").read_bytes()))
    counted = max(ended)
    try:
        session = open_session(folder / "s.stepscope")
    except StepscopeError as error:
        print(error, file=sys.stderr)
        return Round(opened=False, counted=counted, stored=0, lost_ms=0)
    stored = sum(int((w.with_gaps().kind == kind).sum()) + counted_in_gaps(w, kind) for w in session.workers)
    lost_ms = 0.0 if stored >= counted else (killed_ns - ended.get(stored + 1, 0)) / 1e6
    stated = session.manifest.sidecar_starts == 1 or any("sidecar died" in d.text for d in session.manifest.diagnostics)
    return Round(opened=True, counted=counted, stored=stored, lost_ms=lost_ms, stated=stated)


def counted_in_gaps(worker: Worker, kind: Kind) -> int:
    """Number of calls that were only counted because their wrapper was detached."""
    return int(gaps.counted(worker.gaps, kind).calls.sum())


def kill_job(folder: Path, python: str, text: str, kind: Kind, after_s: float) -> Round:
    """Kill one job and judge its session."""
    process = start(folder, python, text, 600)
    sidecar(process.pid)
    time.sleep(after_s)
    job = next(pid for pid, is_sidecar in children(process.pid).items() if not is_sidecar)
    os.kill(job, signal.SIGKILL)
    killed_ns = time.monotonic_ns()
    process.communicate()
    return replace(judge(folder, kind, killed_ns), job_unharmed=process.returncode == -signal.SIGKILL)


def kill_sidecar(folder: Path, python: str, text: str, kind: Kind, after_s: float) -> Round:
    """Kill one sidecar and judge the session."""
    process = start(folder, python, text, after_s + 1.5)
    first = sidecar(process.pid)
    time.sleep(after_s)
    killed = time.monotonic()
    os.kill(first, signal.SIGKILL)
    sidecar(process.pid, other_than=first)
    back_s = time.monotonic() - killed
    out, _ = process.communicate()
    unharmed = process.returncode == 0 and out == "done\n"
    return replace(judge(folder, kind, time.monotonic_ns()), back_s=back_s, job_unharmed=unharmed)


def show(what: str, rounds: list[Round]) -> bool:
    """Print a row; returns whether every round is right."""
    opened = sum(r.opened for r in rounds)
    whole = sum(r.opened and r.stored >= r.counted for r in rounds)
    worst = max(r.lost_ms for r in rounds)
    unharmed = sum(r.job_unharmed for r in rounds)
    stated = sum(r.stated for r in rounds)
    back = (
        f"{median(r.back_s for r in rounds):.2f} / {max(r.back_s for r in rounds):.2f} s" if rounds[0].back_s else "-"
    )
    print(
        f"{what:<8} {len(rounds):>6} {opened:>6} {whole:>8} {worst:>13.1f} {unharmed:>8} {stated:>6} {back:>15} "
        f"{sum(r.counted for r in rounds):>9}"
    )
    return opened == unharmed == stated == len(rounds) and worst <= 100 and max(r.back_s for r in rounds) <= 1.0


@_left_behind.nothing_stays()
def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--tf", metavar="PYTHON")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    python = options.tf or sys.executable
    text, kind = (JOB + KERAS, Kind.EXECUTION) if options.tf else (JOB + STEPS, Kind.SPAN)
    print(
        f"{'killed':<8} {'rounds':>6} {'opened':>6} {'complete':>8} {'worst loss ms':>13} {'job ok':>8} {'stated':>6} "
        f"{'back med / max':>15} {'records':>9}"
    )
    good = True
    for what, kill in (("job", kill_job), ("sidecar", kill_sidecar)):
        rounds = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory(prefix="kills-") as folder:
                rounds.append(kill(Path(folder), python, text, kind, chance.uniform(0.0, 3.0)))
        good = show(what, rounds) and good
    sys.exit(not good)


if __name__ == "__main__":
    main()
