"""Turns of real programs: folds of Keras, and the epochs of a loop in plain TensorFlow."""

from __future__ import annotations

import msgspec
import pytest

from stepscope.model.report.report import Report

from .conftest import Project, environment

pytestmark = [pytest.mark.tf, pytest.mark.slow]

MODEL = """
import time
import numpy as np
import tensorflow as tf

def spend(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))

x = np.random.default_rng(0).standard_normal((2048, 64)).astype("float32")
"""
FOLDS = f"""{MODEL}
def load_table():
    spend(0.4)
    return x

for fold in range(4):
    data = load_table()
    model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, data[:, :1], batch_size=16, verbose=0)
    model.evaluate(data, data[:, :1], batch_size=64, verbose=0)
"""
EPOCHS = f"""{MODEL}
w = tf.Variable(tf.zeros([64, 1]))

@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ w - batch[:, :1]))
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss

def shuffled():
    spend(0.3)
    return [x[i : i + 16] for i in range(0, len(x), 16)]

def one_epoch():
    for batch in shuffled():
        loss = float(train_step(tf.constant(batch)))
        if loss < 0:
            print("never")

def main():
    for epoch in range(12):
        one_epoch()

main()
"""


def told(project: Project, program: str) -> Report:
    """The report of a run of a program."""
    project.script("train.py", program)
    done = project.run("run", "--budget", "0%", "train.py", env=environment(TF_CPP_MIN_LOG_LEVEL="2"), patience_s=200)
    assert done.returncode == 0, done.stderr
    (session,) = project.sessions()
    return msgspec.json.decode((session / "report.json").read_bytes(), type=Report)


def line_of(program: str, code: str) -> int:
    """Line of some code in a program."""
    return program[: program.index(code)].count("\n") + 1


def test_folds(project: Project) -> None:
    """Each call of fit at one line is a turn, with its traces, its evaluation and what the loop does between."""
    turns = told(project, FOLDS).turns
    assert turns is not None
    assert (turns.call, turns.count) == ("fit", 4)
    assert turns.where.line == line_of(FOLDS, "    model.fit(")
    parts = {part.phase: part for part in turns.parts}
    assert {"steps", "tracing", "evaluation", "between-steps"} <= parts.keys()
    assert "load_table" in {place.function for place in parts["between-steps"].where}


def test_epochs_of_a_loop(project: Project) -> None:
    """A loop around the one of the steps has turns; the function that makes its batches is the first finding."""
    report = told(project, EPOCHS)
    turns = report.turns
    assert turns is not None
    assert not turns.call
    assert 9 <= turns.count <= 12  # a look may miss a pause on a busy machine
    assert turns.where.line == line_of(EPOCHS, "    for epoch in")
    assert turns.parts[0].phase == "between-steps"
    own = [f for f in report.findings if f.severity != "info" and f.introduced_stage != "environment setting"]
    assert {"shuffled", "spend"} & {place.function for place in own[0].where}
