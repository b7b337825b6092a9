"""Near-misses and variants of the rules: expectations stand on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes

MAP_HEAD = """
import tensorflow as tf
images = tf.data.TFRecordDataset(["a", "b"])
"""


@pytest.mark.parametrize(
    "text",
    [
        "images.map(lambda x: tf.io.parse_tensor(x, tf.float32))",
        "images.map(lambda x: tf.image.random_flip_up_down(x), num_parallel_calls=4)",
        "images.map(lambda x: tf.image.random_flip_up_down(x), 4)",
        "images.map(lambda x: tf.image.stateless_random_flip_up_down(x, seed=(1, 2)))",
        "images.map(unknown)",
        "images.map(lambda x: tf.image.random_flip_up_down(x), **options)",
        "tf.data.Dataset.range(8).map(lambda x: x + tf.random.uniform([]))",
        "list(map(lambda x: tf.random.uniform([]), images))",
    ],
)
def test_maps_that_are_left_alone(text: str) -> None:
    """Stateless, parallel, unknown, tiny, or no tf.data at all."""
    assert codes(MAP_HEAD + text) == []


def test_stateful_maps() -> None:
    """Random ops, variables, tables and Python functions, in lambdas, functions, methods, partials and imports."""
    assert_expected(
        {
            "main.py": """
            import functools
            import tensorflow.compat.v1 as tf1
            from tensorflow import data
            import tensorflow as tf
            from augment import flip as turn, jitter
            noise = tf.Variable(0.1)
            table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
            ds = data.TFRecordDataset("x")

            class Input:
                def load(self, x):
                    return tf.py_function(len, [x], tf.int32)

                def make(self):
                    return ds.map(self.load)  # expect: TFD001

            def scaled(x, by):
                return x * by + noise

            a = ds.map(lambda x: x + noise)  # expect: TFD001
            b = ds.map(functools.partial(scaled, by=2))  # expect: TFD001
            c = ds.map(turn)  # expect: TFD001
            d = ds.map(lambda x: table.lookup(x), num_parallel_calls=None)  # expect: TFD001
            e = ds.batch(2).map(lambda x: jitter(x))  # expect: TFD001
            f = ds.interleave(lambda p: data.TextLineDataset(p), cycle_length=4)  # expect: TFD001
            g = tf1.data.TFRecordDataset("x").map(lambda x: tf1.random_uniform([]) + x)  # expect: TFD001
            h = ds.map(tf.strings.lower)
            """,
            "augment.py": """
            import tensorflow as tf

            def flip(x):
                return jitter(x)

            def jitter(x):
                return x + tf.random.normal([])
            """,
        }
    )


def test_every_sequential_map_of_old_versions() -> None:
    """Before TensorFlow 2.7 a stateless map is sequential too."""
    text = MAP_HEAD + "images.map(lambda x: tf.io.parse_tensor(x, tf.float32))"
    assert codes(text, version="2.4") == ["TFD001"]


STEP = """
import numpy as np
import tensorflow as tf

@tf.function
def step(x, n=0):
    return x * tf.cast(n, tf.float32)

@tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)])
def signed(x, n):
    return x

x = tf.zeros([])
"""


def test_python_arguments() -> None:
    """Numbers and strings that change; not bools, remainders, arrays, tensors, constants or what nobody knows."""
    assert_expected(
        STEP
        + """
for i in range(1000):
    step(x, i)  # expect: TFF001
    step(x, n=float(i))  # expect: TFF001
    step(x, (i, 2))  # expect: TFF001
    step(x, f"step {i}")  # expect: TFF001
    step(x, tf.constant(i))
    step(x, np.float32(i))
    step(x, i % 4)
    step(x, i > 10)
    step(x, 5)
    signed(x, i)
k = 0
while True:
    k += 1
    step(x, k)  # expect: TFF001
for i in range(3):
    step(x, i)
values = [step(x, j) for j in range(100)]  # expect: TFF001
for item in unknown():
    step(x, item)
for i in np.arange(100):
    step(x, i)
"""
    )


def test_traced_callers_are_silent() -> None:
    """Inside of another tf.function a loop is unrolled once; that is another rule's matter."""
    text = STEP + "@tf.function\ndef outer():\n    for i in range(1000):\n        step(x, i)\n"
    assert "TFF001" not in codes(text)


def test_functions_made_by_call_and_kept_in_self() -> None:
    """``self.step = tf.function(self._step)`` is a tf.function as a decorated one is."""
    assert_expected(
        """
        import tensorflow as tf

        class Trainer:
            def __init__(self):
                self.step = tf.function(self._step)

            def _step(self, x, n):
                return x * n

            def train(self, data):
                for n, x in enumerate(data):
                    self.step(x, n)  # expect: TFF001
                    self._step(x, n)
        """
    )


def test_predict_in_loops() -> None:
    """Through names, attributes and calls; silent for other libraries, other models, few calls and training loops."""
    assert_expected(
        """
        import numpy as np
        import tensorflow as tf
        from sklearn.linear_model import LogisticRegression
        from tensorflow.keras.models import load_model

        model = load_model("m.keras")
        forest = LogisticRegression()

        class Agent:
            def __init__(self):
                self.net = tf.keras.Sequential([tf.keras.layers.Dense(2)])

            def act(self, state):
                return np.argmax(self.net.predict(state[np.newaxis, :])[0])  # expect: KER001

            def learn(self, batch):
                self.net.fit(batch)

        agent = Agent()
        state = np.zeros(4)
        for _ in range(10000):
            action = agent.act(state)
            state = environment(action)

        for row in rows:
            model.predict(np.expand_dims(row, 0))  # expect: KER001
            forest.predict([row])

        for m in [load_model(p) for p in paths]:
            m.predict(x)

        for fold in folds:
            fresh = tf.keras.Sequential()
            fresh.predict(fold)

        for epoch in range(100):
            model.fit(x, y)
            model.predict(fold_of(epoch))

        for i in range(3):
            model.predict(rows[i])

        for part in parts:
            model.predict(part, batch_size=512)

        for part in parts:
            model.predict(whole)
        """,
        only="KER001",
    )


def test_graph_ops() -> None:
    """Ops built where the graph runs; not layers of a model, fresh graphs, or eager code."""
    assert_expected(
        """
        import tensorflow.compat.v1 as tf

        x = tf.placeholder(tf.float32)
        w = tf.get_variable("w", [])

        def logits(feed, session):
            return session.run(tf.nn.softmax(x * w), feed)  # expect: OPS001

        net = x
        for size in range(100):
            net = tf.layers.dense(net, size)

        with tf.Session() as sess:
            while True:
                sess.run(tf.assign(w, 0.5))  # expect: OPS001
            for batch in batches:
                logits({x: batch}, sess)
                tf.train.Saver().save(sess, "x")  # expect: OPS001
            for i in range(5):
                sess.run(tf.assign(w, i))
            for batch in batches:
                sess.run(net, {x: batch})

        for fold in folds:
            with tf.Graph().as_default(), tf.Session() as own:
                own.run(tf.zeros([fold]))
        """
    )


def test_eager_loops_build_no_graph() -> None:
    """The same calls in TensorFlow 2 without sessions are not reported."""
    assert codes("import tensorflow as tf\nfor i in range(1000):\n    y = tf.nn.relu(tf.zeros([i]))\n") == []
