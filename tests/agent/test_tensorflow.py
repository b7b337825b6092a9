"""With the real TensorFlow: arming by its import, the thread after it, the same results."""

from __future__ import annotations

import importlib.util

import pytest

from stepscope.model.log.events import AgentCost, Framework, Probe, ProcessEnded, ProcessStarted, ThreadSeen
from stepscope.wire.kinds import Kind

from .conftest import Armed

pytestmark = [
    pytest.mark.tf,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="no TensorFlow in this environment"),
]

PROGRAM = """
import sys, threading
assert not any(name.startswith("tensorflow") for name in sys.modules)
import tensorflow as tf
tf.random.set_seed(1)
@tf.function
def step(x): return tf.reduce_sum(x * x)
total = 0.0
for i in range(300): total += float(step(tf.random.uniform([8, 8])))
print(repr(total), threading.active_count())
"""
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1"}


def test_training_is_measured_and_unchanged(armed: Armed) -> None:
    """The import of TensorFlow arms; output and results equal those of a run without us."""
    plain = armed.start(PROGRAM, env={**QUIET, "STEPSCOPE_RUN": ""})
    result = armed.start(PROGRAM, env=QUIET)
    assert result.returncode == 0, result.stderr
    assert result.stdout == plain.stdout
    (process,) = armed.processes()
    assert {line.name for line in process.of(Framework)} >= {"tensorflow", "numpy"}
    assert [line.name for line in process.of(Probe) if not line.attached and line.why.endswith("Error")] == []
    assert isinstance(process.lines[-1], ProcessEnded)
    lines = [type(line) for line in process.lines]
    agent = next(line for line in process.of(ThreadSeen) if line.name == "stepscope-agent")
    imported = next(line for line in process.of(Framework) if line.name == "tensorflow")
    assert lines.index(Framework) < lines.index(ThreadSeen) or agent.at > imported.at
    started = process.of(ProcessStarted)[0]
    assert 0 < imported.at - imported.dur <= started.at < imported.at  # the import began before the log


def test_warnings_as_errors(armed: Armed) -> None:
    """TensorFlow under -W error behaves as without us, whatever that is."""
    plain = armed.start("import tensorflow\nprint('on')", "-W", "error", env={**QUIET, "STEPSCOPE_RUN": ""})
    result = armed.start("import tensorflow\nprint('on')", "-W", "error", env=QUIET)
    assert (result.stdout, result.returncode) == (plain.stdout, plain.returncode)


def test_samples_and_cost_of_a_longer_run(armed: Armed) -> None:
    """A run of some seconds has samples, a tick a second and the calibrated cost of a record."""
    program = PROGRAM.replace("range(300)", "range(2)") + (
        "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: step(tf.ones([8, 8]))\n"
    )
    result = armed.start(program, env=QUIET)
    assert result.returncode == 0, result.stderr
    (process,) = armed.processes()
    assert len(process.kinds(Kind.SAMPLE)) >= 10
    assert len(process.kinds(Kind.TICK)) >= 2
    (cost,) = process.of(AgentCost)
    assert cost.record_ns > 0


SCAN = """
import gc, subprocess, sys, types, tensorflow as tf
import keras
def ours():
    found = set()
    arm = sys.modules["stepscope"].__file__.rpartition("/")[0]
    def look(name, value):
        value = vars(type(value)).get("__func__") and value.__func__ or value
        if isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith(arm): found.add(name)
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in ("tensorflow", "keras", "subprocess", "multiprocessing"): continue
        for name, value in list(vars(module).items()):
            place = module_name + "." + name
            look(place, value)
            if not issubclass(type(value), type): continue
            for attribute, inner in list(vars(value).items()): look(place + "." + attribute, inner)
    return found
from stepscope.agent import state
before = ours()
finders = len(sys.meta_path)
state.CURRENT.take_out("test")
print(len(before) > 10, ours(), len(finders_left := sys.meta_path) == finders - 1)
print([c for c in gc.callbacks if c.__module__.startswith("stepscope")])
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.ones([8, 2]), tf.ones([8, 1]), verbose=0)
print("trained")
"""


def test_taking_the_agent_out_puts_every_attribute_back(armed: Armed) -> None:
    """After the agent has left, no function of ours is reachable in the frameworks, and training works."""
    result = armed.start(SCAN, env=QUIET)
    assert result.stdout == "True set() True\n[]\ntrained\n", result.stderr


LET_GO = """
import gc, weakref
import keras, numpy as np, tensorflow as tf

class Array(np.ndarray):
    pass

class Wide(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(4)
    def call(self, x):
        return self.inner(x)

def job():
    x = np.ones((64, 4), "float32").view(Array)
    wide = Wide()
    model = keras.Sequential([keras.Input((4,)), wide, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, np.ones((64, 1), "float32"), verbose=0)
    model.predict(x, verbose=0)
    data = tf.data.Dataset.range(9).map(lambda i: i + 1).batch(3)
    iterator = iter(data)
    batch = next(iterator)
    @tf.function
    def step(value): return value * 2
    step(batch)
    concrete = step.get_concrete_function(batch)
    things = (x, wide, wide.inner, model, model.optimizer, model.train_function, data, iterator, batch, step, concrete)
    return [(type(thing).__name__, weakref.ref(thing)) for thing in (*things, concrete.graph)]

noted = job()
keras.backend.clear_session()
for _ in range(3): gc.collect()
print([name for name, reference in noted if reference() is not None])
"""


def test_what_the_job_lets_go_of_is_gone(armed: Armed) -> None:
    """Models, what they are trained with, datasets, iterators, functions and graphs die as they do without us."""
    plain = armed.start(LET_GO, env={**QUIET, "STEPSCOPE_RUN": ""})
    assert plain.stdout == "[]\n", plain.stderr
    assert armed.start(LET_GO, env=QUIET).stdout == "[]\n"


LOCALS = """
import keras

class Outer(keras.layers.Layer):
    def __init__(self, units=3, depth=1):
        config = locals()
        del config["self"], config["__class__"]
        super().__init__()
        self.inner = [keras.layers.Dense(units), Outer(units, 0) if depth else None]
        self.config = config

print(sorted(Outer().config))
"""


def test_variables_that_a_layer_has_asked_for_stay_as_they_are(armed: Armed) -> None:
    """Where a layer was built is found without a look at the variables of a function that has ``locals()``."""
    plain = armed.start(LOCALS, env={**QUIET, "STEPSCOPE_RUN": ""})
    assert plain.stdout == "['depth', 'units']\n", plain.stderr
    assert armed.start(LOCALS, env=QUIET).stdout == plain.stdout
