"""Rules of graphs, sessions, devices and library versions; expectations stand on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes, hits

from stepscope.check.advisories import ALL as ADVISORIES


def test_ops_that_stay_the_same() -> None:
    """In eager loops and in loops that build a graph; the largest expression is named, and what it is made of not."""
    text = """
    import tensorflow as tf
    size = 8

    class Optimizer(tf.train.Optimizer):
        def __init__(self, epsilon):
            self._epsilon = epsilon

        def create(self, variables):
            for variable in variables:
                init = tf.constant_initializer(self._epsilon)  # expect: OPS004
                self.slot(variable, init)

    def build(layers, width):
        for layer in range(layers):
            zeros = tf.zeros([size, width])  # expect: OPS004
            mask = tf.exp(-tf.square(tf.linspace(-3.0, 3.0, size)))  # expect: OPS004
            yield zeros * mask * tf.cast(layer, tf.float32)
    """
    assert_expected(text, version="1.15", only="OPS004")
    eager = "\n".join(
        line.partition("  # expect")[0] if "zeros =" in line or "init =" in line else line for line in text.splitlines()
    )
    assert_expected(eager, version="2.21", only="OPS004")


@pytest.mark.parametrize(
    "body",
    [
        "v = tf.Variable(tf.zeros([3]))",
        "v = tf.get_variable('v', [3])",
        "v = tf.random.normal([3])",
        "v = tf.zeros([i])",
        "if i == 7:\n        v = tf.zeros([3])",
        "v = tf.keras.initializers.get('ones')",
        "v = tf.layers.dense(x, 3)",
        "v = tf.io.read_file(path)",
        "v = tf.reduce_sum(table())",
        "parts.append(i)\n    v = tf.stack(parts)",
        "now = []\n    now.append(i)\n    v = tf.stack(now)",
    ],
)
def test_ops_that_are_left_alone(body: str) -> None:
    """Variables, random ops, what changes, what a condition guards, what is not known."""
    text = f"import tensorflow as tf\nx = tf.zeros([3])\npath = 'a'\nparts = []\nfor i in range(100):\n    {body}\n"
    assert "OPS004" not in codes(text)
    assert "OPS004" not in codes(text, version="1.15")


@pytest.mark.parametrize(
    ("middle", "told"),
    [
        ("b = tf.cast(tf.range(9), tf.float32)", True),
        ("b = tf.cast(tf.range(i), tf.float32)", False),
        ("b = tf.cast(tf.range(9), tf.float32)\n    if i == 7:\n        b = b + 1.0", False),
        ("b = tf.random.normal([9])", False),
        ("b = [1.0]\n    b.append(i)", False),
    ],
)
def test_ops_made_of_what_the_loop_makes_the_same(middle: str, told: bool) -> None:
    """What is made in the loop, out of nothing that changes, does not change either."""
    text = f"import tensorflow as tf\nfor i in range(100):\n    {middle}\n    v = tf.sin(b)\n    print(v, i)\n"
    assert codes(text) == (["OPS004"] if told else [])


def test_few_iterations_are_counted_through_arithmetic() -> None:
    """``range(1, LAYERS + 1)`` with six layers is no hot loop."""
    text = "import tensorflow as tf\nLAYERS = {}\nfor i in range(1, LAYERS * 2 // 2 + 1):\n    v = tf.zeros([3]) + i\n"
    assert codes(text.format(6), version="1.15") == []
    assert codes(text.format(60), version="1.15") == ["OPS004"]


def test_traced_loops_are_left_alone() -> None:
    """In a graph equal nodes are merged."""
    body = "    for i in range(50):\n        x += tf.zeros([3])\n    return x\n"
    assert codes("import tensorflow as tf\n@tf.function\ndef f(x):\n" + body) == []


def test_backend_calls_in_loops() -> None:
    """Functions and models of tensors that exist, made again and called in the same iteration."""
    assert_expected(
        """
        import numpy as np
        from tensorflow import keras
        from tensorflow.keras import backend as K
        model = keras.Sequential([keras.layers.Dense(4)])
        for batch in np.zeros((40, 16, 8)):
            inner = keras.Model(model.inputs, model.layers[0].output)  # expect: OPS003
            inner.predict_on_batch(batch)
            K.function([model.input], [model.output])([batch])  # expect: OPS003
        for layer in model.layers:
            part = keras.Model(model.inputs, layer.output)
            part.predict_on_batch(batch)
        models = []
        for i in range(100):
            models.append(keras.Model(model.inputs, model.outputs))
        for epoch in range(5):
            inner = keras.Model(model.inputs, model.outputs)
            inner(batch)
        print(K.eval(model.output))
        """,
        only="OPS003",
    )


def test_evaluations_that_build_nodes() -> None:
    """K.eval of an expression in a loop of TensorFlow 1; of variables, and in version 2, it builds nothing."""
    text = """
    from keras import backend as K
    rate = K.variable(0.1)
    for step in range(1000):
        print(K.eval(K.square(rate)))  # expect: OPS003
        print(K.get_value(rate), K.eval(rate))
    """
    assert_expected(text, version="1.15", only="OPS003")
    assert "OPS003" not in codes(text, version="2.21")


def test_forks_after_the_framework() -> None:
    """Children that use TensorFlow after the parent did; not with spawn, not plain NumPy, not before."""
    head = "import multiprocessing as mp\nimport tensorflow as tf\nimport numpy as np\n"
    work = "def work(x):\n    return tf.square(x)\n"
    plain = "def work(x):\n    return np.square(x)\n"
    used = "model = tf.keras.models.load_model('m')\n"
    pool = "with mp.Pool(4) as pool:\n    pool.map(work, [1, 2])\n"
    assert codes(head + work + used + pool) == ["DEV005"]
    assert codes(head + work + used + "p = mp.Process(target=work, args=(1,))\np.start()\n") == ["DEV005"]
    assert codes(head + plain + used + pool) == []
    assert codes(head + work + pool + used) == []
    assert codes(head + work + used + "mp.set_start_method('spawn')\n" + pool) == []
    assert codes(head + work + used + pool.replace("mp.Pool", "mp.get_context('spawn').Pool")) == []
    assert codes({"tests/test_x.py": head + work + used + pool}) == []


def test_data_of_tutorials_builds_no_nodes() -> None:
    """``read_data_sets`` gives arrays: batches of it, and their methods, are no ops."""
    text = """
    import tensorflow as tf
    from tensorflow.examples.tutorials.mnist import input_data
    mnist = input_data.read_data_sets("/tmp/data")
    with tf.Session() as session:
        for step in range(1000):
            x, y = mnist.train.next_batch(32)
            session.run(train, {place: x.reshape((32, 28, 28))})
    """
    assert codes(text, version="1.15") == []


def test_versions_with_known_leaks() -> None:
    """A repeated predict in a version that an issue names; not in others, not once."""
    text = (
        "from tensorflow import keras\nmodel = keras.models.load_model('m')\nwhile True:\n    model.predict(rows())\n"
    )
    once = "from tensorflow import keras\nmodel = keras.models.load_model('m')\nmodel.predict(rows())\n"
    for version in ("1.14", "2.0", "2.2", "2.3", "2.11"):
        assert "LIB001" in codes(text, version=version)
        assert codes(once, version=version) == []
    for version in ("1.15", "2.5", "2.21"):
        assert "LIB001" not in codes(text, version=version)


def test_every_advisory_has_a_source() -> None:
    """The table names its issues, and ranges that are not empty."""
    for advisory in ADVISORIES:
        assert advisory.source.startswith("https://github.com/")
        assert advisory.first < advisory.fixed
        assert advisory.calls


def test_training_that_is_pinned_to_the_cpu() -> None:
    """What trains under a fixed CPU device; not pipelines, not chosen devices."""
    assert_expected(
        """
        import tensorflow as tf
        model = tf.keras.Sequential([])
        tf.debugging.set_log_device_placement(True)  # expect: DEV003
        with tf.device("/CPU:0"):  # expect: DEV003
            model.fit(x, y)
        with tf.device("/GPU:0"):
            model.fit(x, y)
        with tf.device(chosen):
            model.fit(x, y)
        with tf.device("/cpu:0"):
            data = tf.data.TFRecordDataset("x")
        if args.cpu:
            with tf.device("/cpu:0"):
                model.fit(x, y)
        """,
        only="DEV003",
    )


@pytest.mark.parametrize(
    ("steps", "test", "severity"),
    [
        (1000, "step % 50 == 0", "info"),
        (1000, "(step + 1) % every == 0", "info"),
        (100_000, "step % 50 == 0", "warning"),
        (1000, "step % unknown == 0", "warning"),
        (1000, "step > 50", "error"),
    ],
)
def test_ops_added_every_nth_time_count_as_often_as_they_are(steps: int, test: str, severity: str) -> None:
    """An accuracy that is built anew every 50th of a thousand steps: 20 times; of a hundred thousand it adds up."""
    text = f"""
import sys
import tensorflow as tf
x = tf.placeholder(tf.float32, [None, 8])
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.layers.dense(x, 1)))
session = tf.Session()
every, unknown = 100, int(sys.argv[1])

def accuracy(batch):
    return session.run(tf.reduce_mean(x), feed_dict={{x: batch}})

for step in range({steps}):
    session.run(train, feed_dict={{x: [[0.0] * 8]}})
    if {test}:
        print(accuracy([[0.0] * 8]))
"""
    assert [h.severity for h in hits(text, version="1.15") if h.code == "OPS001"] == [severity]
