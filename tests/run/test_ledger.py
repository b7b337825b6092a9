"""The ledger of a real training agrees with what the program measures of itself."""

from __future__ import annotations

import json

import pytest

from .conftest import Project, environment

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.alone]

PROGRAM = """
import time
began = time.monotonic()
import tensorflow as tf
import json, numpy as np
marks = {"imports": time.monotonic() - began}

def spent(name, since):
    marks[name] = marks.get(name, 0.0) + time.monotonic() - since

def load():
    until = time.thread_time() + 0.5
    while time.thread_time() < until:
        sum(range(1000))

at = time.monotonic()
load()
x = np.random.default_rng(0).standard_normal((2048, 128)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Input((128,)), tf.keras.layers.Dense(1024), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
spent("building", at)
for turn in range(3):
    at = time.monotonic()
    model.fit(x, x[:, :1], batch_size=64, epochs=2, verbose=0)
    spent("fit", at)
    at = time.monotonic()
    for _ in range(2):
        model.evaluate(x, x[:, :1], batch_size=32, verbose=0)
    spent("evaluation", at)
    at = time.monotonic()
    load()
    spent("between", at)
print(json.dumps(marks))
"""


def test_parts_are_what_the_program_measures(project: Project) -> None:
    """Imports, building, fits, evaluations and pauses take what the program's clock says, and little is not seen."""
    project.script("train.py", PROGRAM)
    done = project.run("run", "--budget", "0%", "train.py", env=environment(TF_CPP_MIN_LOG_LEVEL="2"), patience_s=200)
    assert done.returncode == 0, done.stderr
    marks = json.loads(done.stdout.splitlines()[-1])
    report = json.loads(project.run("report", str(*project.sessions()), "--format", "json").stdout)
    entries = [entry for entry in report["ledger"] if entry["maker"] is None]
    times: dict[str, float] = {}
    for entry in entries:
        times[entry["phase"]] = times.get(entry["phase"], 0.0) + entry["ns"] / 1e9
    wall = report["session"]["wall_ns"] / 1e9
    share = {name: seconds / wall for name, seconds in times.items()}
    told = {name: seconds / wall for name, seconds in marks.items()}
    assert share.get("imports", 0) == pytest.approx(told["imports"], abs=0.05)
    assert share.get("building", 0) == pytest.approx(told["building"], abs=0.05)
    fits = share["first-steps"] + share["steps"] + share.get("tracing", 0)
    assert fits == pytest.approx(told["fit"], abs=0.07)
    assert share["evaluation"] == pytest.approx(told["evaluation"], abs=0.05)
    last = told["between"] / 3  # the last pause comes after the last step
    assert share["between-steps"] == pytest.approx(told["between"] - last, abs=0.07)
    assert share["end"] >= last - 0.05
    assert share.get("not-seen", 0) < 0.07  # of steps that were only counted, some take longer than the usual one
    assert sum(share.values()) == pytest.approx(1, abs=0.03)
