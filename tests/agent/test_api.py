"""What a user may call in a job: spans, timers, metrics and the Keras callback; measured, and where nobody measures."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.agent.conftest import Armed, Measured

import stepscope
from stepscope.model.log.events import AgentDiagnostic, Name
from stepscope.wire.kinds import Flag, Kind

PROGRAM = """
import stepscope
for i in range(5):
    stepscope.metric("loss", 1.0 / (i + 1))
stepscope.metric("count", 7)
stepscope.metric("bad", float("nan"))
t = stepscope.timer("load").start()
print(t.stop() > 0.0, t.stop())
with stepscope.span("work"):
    with stepscope.span("inner"): pass
@stepscope.span("decorated")
def work(a): return a + 1
print(work(1), work.__name__)
try:
    with stepscope.span("fails"): 1 / 0
except ZeroDivisionError: print("raised")
class Odd:
    def __float__(self): raise KeyError("mine")
try: stepscope.metric("odd", Odd())
except KeyError: print("the job's own error")
"""
SAID = "True 0.0\n2 work\nraised\n"
KERAS = """
import sys, types
if len(sys.argv) > 1: import tf_keras as keras
else: import keras
import numpy as np, stepscope
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((32, 4), "float32")
history = model.fit(x, x[:, :1], epochs=3, batch_size=8, verbose=0,
    validation_data=(x, x[:, :1]), callbacks=[stepscope.keras_callback(every=2)])
print(sorted(history.history))
"""


def named(process: Measured, kind: Kind) -> list[str]:
    """Names of the records of a kind, in order."""
    names = {n.id: n.text for n in process.of(Name)}
    return [names[r.name] for r in process.kinds(kind)]


def test_spans_timers_and_metrics_are_records(armed: Armed) -> None:
    """Each is one record on the job's time axis; values are exact, what is not finite is said to be left out."""
    result = armed.start(PROGRAM)
    assert (result.returncode, result.stdout) == (0, SAID + "the job's own error\n"), result.stderr
    (process,) = armed.processes()
    assert named(process, Kind.SPAN) == ["load", "inner", "work", "decorated", "fails"]
    assert process.kinds(Kind.SPAN)[-1].flags == Flag.RAISED
    assert named(process, Kind.METRIC) == ["loss"] * 5 + ["count"]
    values = [struct.unpack("<d", struct.pack("<q", r.arg))[0] for r in process.kinds(Kind.METRIC)]
    assert values == [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 7.0]
    assert [d.code for d in process.of(AgentDiagnostic)] == ["DX913"]


def test_nothing_happens_where_nobody_measures() -> None:
    """With stepscope installed and no run the same program does the same: values are not even read."""
    plain = {"PYTHONPATH": str(Path(stepscope.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=plain, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, SAID, "")


def test_the_stub_offers_what_the_package_does(armed: Armed) -> None:
    """A job whose Python lacks stepscope imports the stub: the same names, and nothing is made by the import."""
    result = armed.start("import stepscope; print(sorted(stepscope.__all__))", "-S")
    assert result.returncode != 0 or "span" in result.stdout
    result = armed.start("import stepscope; print(sorted(n for n in stepscope.__all__ if getattr(stepscope, n)))")
    assert result.stdout == f"{sorted(stepscope.__all__)}\n", result.stderr
    assert not list((armed.folder / "procs").iterdir())


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras in this environment")
def test_keras_callback(armed: Armed) -> None:
    """Epochs are spans, logs at their end and every so many batches are metrics; the history is as without."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    plain = armed.start(KERAS, env={**quiet, "STEPSCOPE_RUN": ""})
    result = armed.start(KERAS, env=quiet)
    assert (result.returncode, result.stdout) == (0, "['loss', 'val_loss']\n"), result.stderr
    assert plain.stdout == result.stdout
    (process,) = armed.processes()
    assert named(process, Kind.SPAN) == ["epoch"] * 3
    metrics = named(process, Kind.METRIC)
    assert [metrics.count(n) for n in ("loss", "val_loss", "batch loss")] == [3, 3, 6]
