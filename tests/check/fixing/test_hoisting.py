"""Fixes that make once what a loop, or each call, makes anew; and where they are not offered."""

from __future__ import annotations

import textwrap

import pytest
from tests.check import checking
from tests.check.fixing.planning import fixed_by

GRAPH = """\
import numpy as np
import tensorflow as tf

rate = tf.Variable(0.1)
scores = tf.placeholder(tf.float32, [None, 40])
{before}
with tf.Session() as session:
    for step in range(400):
        {body}
"""


def graph(body: str, before: str = "pass") -> str:
    """A program of TensorFlow 1 that runs a session in a loop."""
    return GRAPH.format(before=before, body=body.replace("\n", "\n        "))


def plans(text: str, code: str, version: str) -> list[tuple[str, str]]:
    """Actions and safety of the fixes that are offered; "" for a finding without one."""
    found = [hit for hit in checking.hits(textwrap.dedent(text), version=version) if hit.code == code]
    assert found, "not reported"
    return [(hit.fix.action, hit.fix.safety) if hit.fix is not None else ("", "") for hit in found]


@pytest.mark.parametrize(
    ("run", "after"),
    [
        ("session.run(tf.assign(rate, 0.1 / (step + 1)))", "rate.load(0.1 / (step + 1), session)"),
        ("session.run(rate.assign(0.1 / (step + 1)))", "rate.load(0.1 / (step + 1), session)"),
        ("session.run(tf.assign(ref=rate, value=np.sqrt(step)))", "rate.load(np.sqrt(step), session)"),
    ],
)
def test_an_assignment_loads_the_value(run: str, after: str) -> None:
    """The op that gave a variable its first value takes the new one: no node is added, and this is safe."""
    text = graph(run)
    assert plans(text, "OPS001", "1.15") == [("replace-expression", "safe")]
    assert fixed_by(text, "OPS001", version="1.15", unsafe=False) == text.replace(run, after)


def test_a_value_that_is_not_known_is_for_somebody_to_look_at() -> None:
    """A tensor could not be loaded."""
    text = graph("session.run(tf.assign(rate, read()))")
    assert plans(text, "OPS001", "1.15") == [("replace-expression", "unsafe")]


@pytest.mark.parametrize(
    "run",
    [
        "session.run(tf.assign(rate, scores[0, 0] * step))",
        "session.run(tf.assign(rate, 0.5 * step, validate_shape=False))",
        "session.run([tf.assign(rate, 0.5 * step)])",
        "session.run(tf.assign(rate, 0.5 * step), {scores: [[step]]})",
        "now = session.run(tf.assign(rate, 0.5 * step))",
        "session.run(tf.assign_add(rate, 0.5 * step))",
        "session.run(tf.assign(read(), 0.5 * step))",
    ],
)
def test_other_assignments_are_left_alone(run: str) -> None:
    """Tensors, options, other fetches, fed values, a result that is used, sums, what is no known variable."""
    assert plans(graph(run), "OPS001", "1.15") == [("", "")]


def test_a_statement_moves_before_its_loop() -> None:
    """Op after op, until none is built in the loop."""
    body = "flat = tf.reshape(scores, [-1, 8, 5])\nbest = tf.argmax(flat, 2)\n"
    body += "print(session.run(best, {scores: [[0.0] * 40]}))"
    done = fixed_by(graph(body), "OPS001", version="1.15")
    head, loop = done.split("    for step in range(400):\n")
    assert head.endswith("    flat = tf.reshape(scores, [-1, 8, 5])\n    best = tf.argmax(flat, 2)\n")
    assert loop == "        print(session.run(best, {scores: [[0.0] * 40]}))\n"


def test_an_expression_moves_with_the_arithmetic_around_it() -> None:
    """What is fetched is built in place: it gets a name, and ``+ 1`` is not left behind as another node."""
    body = "image, label = session.run([scores, tf.squeeze(scores, axis=-1) + 1])"
    done = fixed_by(graph(body), "OPS001", version="1.15")
    assert "    squeeze_op = tf.squeeze(scores, axis=-1) + 1\n    for step in range(400):\n" in done
    assert "session.run([scores, squeeze_op])" in done


@pytest.mark.parametrize(
    "body",
    [
        "session.run(tf.exp(scores * step), {scores: [[0.0]]})",
        "session.run(tf.random_normal([3]))",
        "x = tf.placeholder(tf.float32)\nsession.run(x, {x: 1.0})",
        "with tf.name_scope('a'):\n    session.run(tf.exp(scores), {scores: [[0.0]]})",
        "known = [step]\nsession.run(tf.stack(known))",
    ],
)
def test_what_changes_or_draws_stays_in_the_loop(body: str) -> None:
    """Arguments of the iteration, random numbers, placeholders, scopes, lists that the loop makes."""
    assert plans(graph(body), "OPS001", "1.15") == [("", "")]


def test_a_model_of_an_inner_layer_moves_before_the_loop() -> None:
    """Not where the iteration chooses the layer's model: nothing is told of there."""
    text = """\
    import numpy as np
    from tensorflow import keras
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    for batch in np.zeros((40, 16, 8), "float32"):
        inner = keras.Model(model.inputs, model.layers[0].output)
        print(inner.predict_on_batch(batch))
    """
    done = fixed_by(text, "OPS003")
    assert done.index("inner = keras.Model") < done.index("for batch") < done.index("inner.predict")


OBJECTS = """\
import functools
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

@tf.function
def apply(x, activation):
    return tf.reduce_sum(activation(x))

def leaky(value, slope):
    return tf.nn.leaky_relu(value, slope)

slope = 0.1
for number, x in enumerate(data):
    apply(x, {argument})
"""


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("lambda value: tf.nn.leaky_relu(value, slope)", "lambda_once"),
        ("functools.partial(leaky, slope=slope)", "partial_once"),
    ],
)
def test_an_object_is_made_before_the_loop(argument: str, name: str) -> None:
    """A lambda or partial that needs nothing of the iteration gets a name there."""
    text = OBJECTS.format(argument=argument)
    assert plans(text, "TFF011", "2.21") == [("hoist-expression", "unsafe")]
    done = fixed_by(text, "TFF011")
    assert f"{name} = {argument}\nfor number, x in enumerate(data):\n    apply(x, {name})\n" in done


@pytest.mark.parametrize("argument", ["lambda value: value * number", "functools.partial(leaky, slope=0.1 * number)"])
def test_an_object_of_the_iteration_stays(argument: str) -> None:
    """What reads the loop's variable is another one each time."""
    assert plans(OBJECTS.format(argument=argument), "TFF011", "2.21") == [("", "")]


SERVICE = """\
import flask
import tensorflow as tf

app = flask.Flask("scores")
model = tf.keras.models.load_model("model.keras")
{more}

@app.route("/score", methods=["POST"])
def score():
    x = tf.constant([flask.request.json["x"]])
    {made}
    return {{"score": call(x).numpy().tolist()}}
"""


@pytest.mark.parametrize(
    ("made", "more", "offered"),
    [
        ("call = tf.function(model)", "", True),
        ("@tf.function\n    def call(x):\n        y = model(x)\n        return y * 2", "", True),
        ("call = tf.function(lambda y: model(y) + x)", "", False),
        ("call = tf.function(model)", "call = 1", False),
        ("call = tf.function(model)", "model = tf.keras.models.load_model('b.keras')", False),
        ("if x is not None:\n        call = tf.function(model)", "", False),
    ],
)
def test_a_function_of_a_handler_moves_above_it(made: str, more: str, offered: bool) -> None:
    """Where it needs names of the module alone, which are bound once, and takes no name that the module has."""
    text = SERVICE.format(made=made, more=more)
    assert plans(text, "TFF014", "2.21") == [("hoist-statement", "unsafe") if offered else ("", "")]
    if offered:
        done = fixed_by(text, "TFF014")
        assert done.index(made.partition("\n")[0]) < done.index("@app.route")


def test_a_method_s_function_moves_above_its_class() -> None:
    """A class is no place to keep it: methods would not find the name."""
    text = """\
    import tensorflow as tf
    from http.server import BaseHTTPRequestHandler

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])


    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            call = tf.function(model)
            self.answer = call(tf.ones([1, 16]))
    """
    assert "call = tf.function(model)\n\n\nclass Handler" in fixed_by(text, "TFF014")


CALLED = """\
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
weights = tf.ones([8, 8])

def score(x, factor=2.0):
    @tf.function
    def total(x):
        y = x @ weights
        return tf.reduce_sum(y) * {factor}
    return total(x)

for x in data:
    score(x)
"""


def test_a_function_of_a_function_moves_above_it() -> None:
    """With its decorator; not where it captures an argument of the function around it."""
    done = fixed_by(CALLED.format(factor="2.0"), "TFF002")
    assert done.index("@tf.function\ndef total(x):") < done.index("def score(")
    assert plans(CALLED.format(factor="factor"), "TFF002", "2.21") == [("", "")]


def test_a_function_of_a_loop_moves_before_it() -> None:
    """With its decorator."""
    text = """\
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
    for x in data:
        @tf.function
        def total(x):
            return tf.reduce_sum(x)
        total(x)
    """
    done = fixed_by(text, "TFF002")
    assert done.index("@tf.function\ndef total") < done.index("for x")
