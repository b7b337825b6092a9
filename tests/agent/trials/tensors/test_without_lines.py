"""Lines left out of compiled functions: what is still computed afterwards."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.agent.trials.run_trial import Trialled, run

from stepscope.agent.trials.tensors.without_lines import FileLines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.conftest import Armed

pytestmark = pytest.mark.tf

NEEDED = """
import collections, gc, json
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph
def needed():
    types = collections.Counter()
    for graph in [one for one in gc.get_objects() if isinstance(one, FuncGraph)]:
        left, seen = [tensor.op for tensor in graph.outputs] + list(graph.control_outputs), set()
        while left:
            op = left.pop()
            if op.name not in seen and "scratch" not in graph.name:
                seen.add(op.name)
                types[op.type] += 1
                left += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    print(json.dumps(types))
"""
STEP = """
weight = tf.Variable(tf.random.normal((64, 64), seed=1))
def augmented(x):
    return tf.sin(x) * tf.cos(x)
def spread(y):
    ordered = tf.sort(y, axis=-1)
    return tf.reduce_mean(ordered[:, 1:] - ordered[:, :-1])
@tf.function(input_signature=[tf.TensorSpec((None, 64))])
def step(x):
    x = augmented(x)
    with tf.GradientTape() as tape:
        y = tf.tanh(tf.matmul(x, weight))
        loss = spread(y)
        if loss > 1e9:
            loss *= 2.0
    total = 0.0
    for _ in tf.range(3):
        total += tf.reduce_sum(tf.exp(x))
    weight.assign_sub(1e-3 * tape.gradient(loss, weight))
    return loss + total
def prepared(x):
    return tf.asinh(x) + 1.0
data = tf.data.Dataset.from_tensor_slices(tf.random.normal((5, 32, 64)))
data = data.map(prepared).filter(lambda x: tf.reduce_all(tf.atan(x) < 2.0))
for batch in data:
    print(float(step(batch)))
needed()
"""
FIT = """
import keras, numpy as np
inputs = keras.Input((16, 16, 3))
x = keras.layers.Conv2D(8, 3)(inputs)
x = keras.layers.Conv2D(8, 5, activation="softplus")(x)
model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(x)))
model.compile("sgd", "mse")
model.fit(np.ones((64, 16, 16, 3), "float32"), np.ones((64, 1)), verbose=0)
needed()
"""


def left(trial: Trialled) -> Counter[str]:
    """Types of the ops that the program's functions still need."""
    assert not trial.code, trial.errors
    return Counter(json.loads(trial.output.splitlines()[-1]))


def line_of(program: str, text: str) -> int:
    """Number of the first line of a program that holds a text."""
    return next(number for number, line in enumerate(program.splitlines(), 1) if text in line)


def written(armed: Armed, program: str) -> Path:
    """The program as a file: AutoGraph reads the source."""
    path = armed.folder / "job.py"
    path.write_text(program)
    return path


def without(armed: Armed, program: str, texts: tuple[str, ...]) -> Counter[str]:
    """The ops that are needed without the lines from the first to the last of some texts."""
    first, last = line_of(program, texts[0]), line_of(program, texts[-1])
    trial = run(armed, written(armed, program), f"without-lines:job.py:{first}-{last}")
    assert trial.outcome("without-lines")[0] == "in-effect", trial.errors
    return left(trial)


@pytest.mark.parametrize(
    ("texts", "gone", "stays"),
    [
        (("def augmented",), ("Sin", "Cos"), ("MatMul", "TopKV2", "Tanh", "Exp")),
        (("ordered = ", "return tf.reduce"), ("TopKV2",), ("Sin", "Tanh", "TanhGrad", "MatMul", "Exp")),
        (("y = tf.tanh",), ("Tanh", "TanhGrad"), ("Sin", "TopKV2", "Exp", "AssignSubVariableOp")),
        (("tape.gradient",), ("TanhGrad",), ("Sin", "TopKV2", "Tanh", "MatMul", "AssignSubVariableOp")),
        (("total += ",), ("Exp",), ("Sin", "TopKV2", "MatMul")),
        (("def prepared",), ("Asinh",), ("Sin", "Exp", "Atan")),
    ],
)
def test_the_ops_of_lines_go_and_all_others_stay(
    armed: Armed, texts: tuple[str, ...], gone: tuple[str, ...], stays: tuple[str, ...]
) -> None:
    """What the lines compute and its gradients are pruned; their inputs, and what takes their results, are not."""
    after = without(armed, NEEDED + STEP, texts)
    assert [name for name in gone if after[name]] == []
    assert [name for name in stays if not after[name]] == []


def test_a_layer_goes_with_the_line_that_built_it(armed: Armed) -> None:
    """The ops of a fit's layers are made in Keras; the other layer's are still there, with its gradients."""
    after = without(armed, NEEDED + FIT, ("Conv2D(8, 5",))
    assert after["Softplus"] == after["SoftplusGrad"] == 0
    assert (after["Conv2D"], after["Conv2DBackpropFilter"]) == (1, 1)


def test_lines_that_make_no_ops_are_not_reached(armed: Armed) -> None:
    """A line of Python leaves nothing out, and is not taken for an answer."""
    program = NEEDED + STEP
    for line in (1, line_of(program, "print(float(step")):  # the second calls the step, and first traces it
        trial = run(armed, written(armed, program), f"without-lines:job.py:{line}")
        assert trial.outcome("without-lines")[0] == "not-reached"


@pytest.mark.parametrize("argument", ["job.py", "7", "job.py:a", "job.py:1-b", ":3"])
def test_an_argument_that_names_no_lines_is_refused(argument: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match="expected FILE:LINE or FILE:FIRST-LAST"):
        FileLines(argument)
