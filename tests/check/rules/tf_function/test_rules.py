"""Rules of tf.function: variants that must be seen, near-misses that must be left alone; expectations on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes

HEAD = """
import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
"""


def test_functions_that_are_made_again() -> None:
    """By decorator, call, at once, by get_concrete_function; in loops and in functions that loops call."""
    assert_expected(
        """
        import tensorflow as tf
        data = tf.data.TFRecordDataset("x").batch(8)
        plain = tf.reduce_sum
        known = tf.function(plain)

        def measure(x):
            @tf.function
            def inner(y):  # expect: TFF002
                return y + 1
            return inner(x)

        for x in data:
            measure(x)
            tf.function(plain)(x)  # expect: TFF002
            fast = tf.function(plain)  # expect: TFF002
            fast(x)
            concrete = known.get_concrete_function(x)  # expect: TFF002
            concrete(x)
        for epoch in range(100):
            @tf.function
            def step(x):  # expect: TFF002
                return tf.reduce_sum(x)
            for x in data:
                step(x)
        """,
        only="TFF002",
    )


@pytest.mark.parametrize(
    "text",
    [
        "fns = []\nfor layer in layers:\n    fns.append(tf.function(layer))\n",
        "fns = {}\nfor name in names:\n    f = tf.function(make(name))\n    fns[name] = f\n",
        (
            "def make(model):\n    @tf.function\n    def call(x):\n        return model(x)\n    return call\n"
            "for m in ms:\n"
            "    make(m)\n"
        ),
        (
            "for trial in range(50):\n    model = tf.keras.Sequential()\n    @tf.function\n    def step(x):\n"
            "        return model(x)\n    for x in data:\n        step(x)\n"
        ),
        "for trial in range(3):\n    tf.function(tf.reduce_sum)(trial)\n",
        (
            "import functools\n@functools.cache\ndef make(n):\n    f = tf.function(tf.reduce_sum)\n    return f(n)\n"
            "for n in range(100):\n    make(n)\n"
        ),
        "def go():\n    @tf.function\n    def step(x):\n        return x\n    for x in data:\n        step(x)\ngo()\n",
        (
            "@tf.function\ndef outer(x):\n    @tf.function\n    def inner(y):\n        return y\n    return inner(x)\n"
            "for x in data:\n    outer(x)\n"
        ),
        (
            "class A:\n    def __init__(self):\n        self.step = tf.function(self.go)\n    def go(self, x):\n"
            "        return x\na = A()\nfor x in data:\n    a.step(x)\n"
        ),
    ],
)
def test_functions_that_are_kept(text: str) -> None:
    """Stored, returned, cached, made for what the iteration makes, made once, or traced by another."""
    assert "TFF002" not in codes(HEAD + text)


def test_shapes_that_change() -> None:
    """Padded batches, sizes of the loop, slices, encoded texts, attributes computed anew; and what relaxes them."""
    for only, other in (("TFF003", "TFF013"), ("TFF013", "TFF003")):
        assert_expected(SHAPES.replace(f"  # expect: {other}", ""), only=only)


SHAPES = """
import tensorflow as tf
words = tf.data.TextLineDataset("x").map(lambda t: tf.strings.split(t))
tokenizer = load()

@tf.function
def step(x):
    return x

@tf.function(reduce_retracing=True)
def relaxed(x):
    return x

@tf.function(input_signature=[tf.TensorSpec([None])])
def signed(x):
    return x

@tf.function(jit_compile=True)
def compiled(x):
    return x

for x in words.padded_batch(8):
    step(x)  # expect: TFF003
    relaxed(x)
    signed(x)
    compiled(x)  # expect: TFF013
for x in words.padded_batch(8, padded_shapes=[64]):
    step(x)
    compiled(x)
for batch in words.padded_batch(8, padded_shapes={"a": [None]}):
    step(batch["a"])  # expect: TFF003
for x in words.batch(8):
    step(x)
history = tf.zeros([1000, 3])
for n in range(1, 100):
    step(tf.zeros([n, 3]))  # expect: TFF003
    step(history[:n])  # expect: TFF003
    step(history[n:n + 8])
    step(tf.zeros([64, 3]))
for text in open("texts"):
    ids = tokenizer.encode(text)
    step(tf.constant([ids]))  # expect: TFF003
for x in words.batch(8):
    step(tf.zeros([x.shape[0], 3]))

class Sampler:
    def __init__(self, n):
        self.n = n
        self.fixed = int(tf.reduce_sum(n))

    def adapt(self, weights):
        self.n = int(tf.reduce_sum(weights))

    def sample(self):
        step(tf.random.uniform([self.fixed]))
        return step(tf.random.uniform([self.n]))  # expect: TFF003
"""


def test_new_objects_as_arguments() -> None:
    """Lambdas, partials, functions and instances of plain classes that the loop makes."""
    assert_expected(
        """
        import functools
        from dataclasses import dataclass
        import tensorflow as tf
        from typing import NamedTuple

        class Config:
            def __init__(self, n):
                self.n = n

        @dataclass(frozen=True)
        class Data:
            n: int

        class Pair(NamedTuple):
            n: int

        @tf.function
        def step(x, f):
            return x

        once = Config(1)
        keep = lambda v: v
        for x in tf.data.TFRecordDataset("x"):
            step(x, lambda v: v)  # expect: TFF011
            step(x, functools.partial(max, 1))  # expect: TFF011
            step(x, f=Config(1))  # expect: TFF011
            step(x, Data(1))
            step(x, Pair(1))
            step(x, once)
            step(x, keep)

            def local(v):
                return v

            step(x, local)  # expect: TFF011
        step(1, lambda v: v)
        """,
        only="TFF011",
    )


def test_unrolled_loops() -> None:
    """More than 64 iterations, or a recurrence along an axis, in traced code; not where Python needs the number."""
    assert_expected(
        """
        import tensorflow as tf
        STEPS = 300

        class Cell(tf.keras.layers.Layer):
            def call(self, inputs):
                state = tf.zeros([8, 4])
                x = tf.identity(inputs)
                for t in range(x.shape[1]):  # expect: TFF004
                    state = tf.tanh(state + x[:, t])
                for t in range(x.shape[-1]):
                    state = tf.tanh(state + x[:, t])
                return state

        class Recurrence(tf.keras.layers.Layer):
            def call(self, series):
                state = tf.zeros([8, 4])
                outputs = []
                for t in range(series.shape[1]):  # expect: TFF004
                    state = self.cell(tf.concat([series[:, t], state], -1))
                    outputs.append(state)
                for name in range(series.shape[1]):
                    outputs.append(series[:, name])
                return tf.stack(outputs, axis=1)

        @tf.function
        def run(x):
            for i in range(STEPS):  # expect: TFF004
                x = tf.tanh(x)
            for i in range(8):
                x = tf.tanh(x)
            for i in tf.range(STEPS):
                x = tf.tanh(x)
            for i in range(STEPS):
                x = weights[i] @ x
            for i in range(100):
                names = str(i)
            return x

        def eager(x):
            for i in range(STEPS):
                x = tf.tanh(x)

        eager(1)
        """,
        only="TFF004",
    )


def test_recursive_functions() -> None:
    """Directly and through another function; not another object's method of the same name."""
    assert_expected(
        """
        import tensorflow as tf

        @tf.function
        def power(x, n):
            return x if n == 0 else x * power(x, n - 1)  # expect: TFF008

        def helper(x):
            return around(x)

        @tf.function
        def around(x):
            return helper(x - 1)

        class Tree(tf.keras.Model):
            def __init__(self, child):
                self.child = Tree(child)

            @tf.function
            def score(self, x):
                return self.child.score(x)

        def plain(n):
            return plain(n - 1)
        """.replace("return around(x)", "return around(x)  # expect: TFF008"),
        only="TFF008",
    )


def test_redundant_functions() -> None:
    """Inner ones that only traced code calls, when they make graphs for it; not those that others call."""
    assert_expected(
        """
        import tensorflow as tf

        @tf.function
        def moment(x, k):  # expect: TFF012
            return tf.pow(x, k)

        @tf.function
        def shared(x, k):
            return tf.pow(x, k)

        @tf.function(jit_compile=True)
        def compiled(x, k):
            return tf.pow(x, k)

        @tf.function
        def fixed(x):
            return tf.pow(x, 2)

        @tf.function
        def moments(x):
            @tf.function
            def inner(y):  # expect: TFF012
                return y + 1
            for k in range(2, 6):
                x += moment(x, k) + shared(x, k) + compiled(x, k)
            return inner(fixed(x))

        moments(tf.zeros([8]))
        shared(tf.zeros([8]), 2)
        """,
        only="TFF012",
    )


def test_graphs_per_request() -> None:
    """In handlers and what they call; not where the function is kept."""
    assert_expected(
        """
        import functools
        import flask
        import tensorflow as tf
        app = flask.Flask("x")
        model = tf.keras.models.load_model("m")

        @app.route("/a")
        def score():
            call = tf.function(model)  # expect: TFF014
            return call(1)

        @app.post("/b")
        def other():
            return work(2)

        def work(x):
            @tf.function
            def inner(y):  # expect: TFF014
                return y
            return inner(x)

        @app.get("/c")
        def kept():
            global call
            call = tf.function(model)
            return call(1)

        @functools.cache
        def made():
            f = tf.function(model)
            return f

        def script():
            call = tf.function(model)
            return call(1)

        script()
        """,
        only="TFF014",
    )
