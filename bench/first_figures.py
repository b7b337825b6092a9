"""How long after its first step a job has figures in ``ps`` (what the page and ``top`` read as well).

Starts each of a few programs several times under ``stepscope run``, looks at the published status 20 times a second,
and prints when the first rate and the first split of the step appeared, in seconds after the program's first step.
``--busy`` keeps every core busy meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stepscope.launcher import jobs

ASKED_S = {False: 3.0, True: 6.0}
"""What ``ps`` shall reach at the 95th percentile, with a free core and on full ones."""
PATIENCE_S = 90.0
FIT = """
import os, sys, time
import numpy as np, tensorflow as tf
class First(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 0 and not os.path.exists(sys.argv[1]):
            open(sys.argv[1], "w").write(repr(time.time()))
        {work}
        if os.path.exists(sys.argv[1] + ".stop"):
            self.model.stop_training = True
model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(10)])
model.compile("adam", "mse")
x, y = np.random.rand(64 * 400, 128).astype("f4"), np.random.rand(64 * 400, 10).astype("f4")
for _ in range(1000):
    model.fit(x, y, batch_size=64, verbose=0, callbacks=[First()])
    if os.path.exists(sys.argv[1] + ".stop"):
        break
"""
LOOP = """
import os, sys, time
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.SGD()
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss
data = tf.data.Dataset.from_tensors((tf.random.normal([64, 128]), tf.random.normal([64, 10]))).repeat()
for number, (x, y) in enumerate(data):
    train_step(x, y)
    if number == 0:
        open(sys.argv[1], "w").write(repr(time.time()))
    {work}
    if os.path.exists(sys.argv[1] + ".stop"):
        break
"""
PROGRAMS = {
    "fit, short steps": FIT.format(work="pass"),
    "fit, 150 ms": FIT.format(work="time.sleep(0.15)"),
    "loop, 30 ms": LOOP.format(work="time.sleep(0.03)"),
}


@contextlib.contextmanager
def load(cores: int) -> Iterator[None]:
    """Processes that keep so many cores busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def once(program: str) -> tuple[float, float]:
    """Seconds from the first step to the first rate, and to the first split of the step."""
    with tempfile.TemporaryDirectory() as folder:
        script, mark = Path(folder) / "train.py", Path(folder) / "first"
        script.write_text(program)
        session = str(Path(folder) / "first.stepscope")
        command = [sys.executable, "-m", "stepscope", "run", "-q", "--session", session, str(script), str(mark)]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        job = subprocess.Popen(command, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rate = split = 0.0
        looks = jobs.JobWatch()
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not (rate and split):
            mine = next((j.status for j in looks.running() if j.status.session == session), None)
            if mine is not None:
                rate = rate or (time.time() if mine.steps_per_s else 0.0)
                split = split or (time.time() if mine.anatomy else 0.0)
            time.sleep(0.05)
        first = float(mark.read_text())
        Path(f"{mark}.stop").touch()
        job.wait(PATIENCE_S)
    return (rate - first if rate else PATIENCE_S, split - first if split else PATIENCE_S)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    asked = parser.parse_args()
    with load(len(os.sched_getaffinity(0)) if asked.busy else 0):
        for name, program in PROGRAMS.items():
            found = [once(program) for _ in range(asked.rounds)]
            for what, times in zip(("rate", "split of the step"), zip(*found, strict=True), strict=True):
                shown = ", ".join(f"{one:.1f}" for one in sorted(times))
                print(f"{name}: first {what} after {shown} s (asked {ASKED_S[asked.busy]:.0f})", flush=True)


if __name__ == "__main__":
    main()
