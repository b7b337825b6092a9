"""Variants and near-misses of the rules about loops over tensors: expectations stand on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes, hits

HEAD = """
import numpy as np
import tensorflow as tf

points = tf.random.normal([2000, 64])
values = points[:, 0]
"""


@pytest.mark.parametrize(
    "call",
    [
        "tf.map_fn(lambda row: tf.math.top_k(row, k=3).values, points)",
        "tf.map_fn(lambda r: tf.gather(r[0], r[1]), (points, values), dtype=tf.float32)",
        "tf.map_fn(fn=lambda r: tf.argmin(tf.where(r > 0, r, 1e9)), elems=points)",
        "tf.map_fn(lambda p: tf.map_fn(lambda q: tf.reduce_sum(q * p), points), points)",
        "tf.map_fn(distance, points)",
        "tf.map_fn(lambda n: tf.random.uniform([], maxval=n), values)",
        "tf.map_fn(lambda r: tf.reduce_min(tf.boolean_mask(r, r > 0)), points)",
        "tf.map_fn(lambda r: r * 2.0, points)",
        "tf.map_fn(lambda v: tf.cond(v > 0, lambda: v * 2.0, lambda: v * 0.5), values)",
        "tf.map_fn(lambda v: tf.cond(v > 0, true_fn=lambda: distance(v), false_fn=lambda: v), values)",
        "tf.map_fn(chosen, values)",
        "tf.compat.v1.map_fn(lambda r: tf.signal.fft(tf.cast(r, tf.complex64)), points)",
    ],
)
def test_map_fn_over_ops_with_a_batch_form(call: str) -> None:
    """Lambdas, functions, structures, nested ones."""
    function = "def distance(row):\n    delta = row - points[0]\n    return tf.norm(delta)\n"
    function += "def chosen(v):\n    def low():\n        return -v\n    return tf.cond(v < 0, low, lambda: v)\n"
    assert codes(f"{HEAD}{function}{call}\n")[:1] == ["VEC001"]


@pytest.mark.parametrize(
    "call",
    [
        "tf.map_fn(lambda row: tf.io.decode_jpeg(row), points)",
        "tf.map_fn(lambda row: tf.boolean_mask(row, row > 0), points)",
        "tf.map_fn(lambda row: tf.where(row > 0), points)",
        "tf.map_fn(lambda row: tf.image.random_flip_up_down(row), points)",
        "tf.map_fn(lambda row: model(row[None]), points)",
        "tf.map_fn(lambda row: unknown(row), points)",
        "tf.map_fn(lambda v: tf.cond(v > 0, lambda: unknown(v), lambda: v), values)",
        "tf.map_fn(lambda v: tf.cond(v > 0, unknown, lambda: v), values)",
        "tf.map_fn(lambda v: tf.while_loop(lambda w: w < 9, lambda w: w * 2, [v]), values)",
        "tf.map_fn(lambda r: tf.math.top_k(r[0], r[1]).values, (points, values))",
        "tf.map_fn(lambda r: tf.math.top_k(r[0], k=r[1]).values, (points, values))",
        "tf.map_fn(lambda r: tf.math.unsorted_segment_mean(r[0], r[1], num_segments=3), (points, values))",
        "tf.map_fn(lambda row: row[: n_of(row)], points)",
        "tf.map_fn(lambda row: tf.reduce_sum(row), points, swap_memory=True)",
        "tf.map_fn(lambda row: tf.reduce_sum(row), points, parallel_iterations=1)",
        "tf.map_fn(unknown, points)",
        "tf.vectorized_map(lambda row: tf.reduce_sum(row), points)",
        "map(lambda row: tf.reduce_sum(row), points)",
    ],
)
def test_map_fn_that_is_left_alone(call: str) -> None:
    """No batch form, not known, or memory is the matter."""
    assert codes(f"{HEAD}{call}\n") == []


def test_rows_in_python() -> None:
    """By index and by iteration; not lists, few rows, recurrences, or with what is not known."""
    assert_expected(
        HEAD
        + """
total = 0.0
for i in range(2000):  # expect: VEC002
    total += tf.reduce_sum(points[i])

out = []
for row in points:  # expect: VEC002
    shifted = row - values[0]
    out.append(tf.norm(shifted))

for i, row in enumerate(points):  # expect: VEC002
    out.append(row * 2.0)

for i in range(5):
    out.append(tf.norm(points[i]))

state = tf.zeros([64])
for row in points:
    state = tf.tanh(row + state)

for row in [points, points]:
    out.append(tf.norm(row))

for row in points:
    print(row)
    plot(row)

for row in points:
    out.append(model(row[None]))

for row in tf.data.Dataset.from_tensor_slices(points):
    out.append(tf.norm(row))

for row in points:
    if unknown:
        break
    out.append(tf.norm(row))

for row in np.zeros((2000, 64)):
    out.append(row * 2)
""",
        only="VEC002",
    )


def test_conditions_per_row() -> None:
    """An if on the row's value; not on something else, and not where the loop ends there."""
    assert_expected(
        HEAD
        + """
out = []
for i in range(2000):
    if values[i] > 0.5:  # expect: VEC004
        out.append(values[i])

for value in values:
    out.append(value if value > 0 else 0.0)  # expect: VEC004

for row in points:
    bits = []
    for value in tf.unstack(row):
        bits.append(1.0 if value > row[0] else 0.0)  # expect: VEC004
    out.append(bits)

for value in np.zeros(2000):
    out.append(value if value > 0 else 0.0)

for value in values:
    if value > 0:
        found = value
        break

last = 0.0
for value in values:
    if value > last:
        last = value + last
"""
    )


LOSS = """
import tensorflow as tf
from tensorflow.keras import backend as K

BATCH = 128
model = tf.keras.Sequential([tf.keras.layers.Dense(32)])
"""


def test_loops_over_the_batch() -> None:
    """In losses, metrics, layers and Lambdas; not over time steps, layers or scales, and not in a recurrence."""
    assert_expected(
        LOSS
        + """
def loss(y_true, y_pred):
    total = 0.0
    for i in range(BATCH):  # expect: VEC005
        total = total + tf.norm(y_true[i] - y_pred[i])
    for c in range(3):
        total += tf.reduce_sum(y_pred[c])
    return total

def metric(y_true, y_pred):
    parts = []
    for row in y_pred:  # expect: VEC005
        parts.append(K.sum(row))
    return sum(parts)

def not_used(y_true, y_pred):
    return [tf.norm(y_pred[i]) for i in range(BATCH)]

class Pool(tf.keras.layers.Layer):
    def call(self, x):
        out = []
        for i in range(tf.shape(x)[0]):  # expect: VEC005
            out.append(tf.reduce_max(x[i], axis=0))
        state = x[0]
        for i in range(BATCH):
            state = tf.tanh(state + x[i])
        for t in range(x.shape[1]):
            out.append(tf.reduce_max(x[:, t]))
        for layer in self.layers:
            x = layer(x)
        for one in x:
            out.append(tf.reduce_max(one))
        for i in range(len(x)):
            out.append(tf.reduce_max(x[i]))
        return tf.stack(out)

model.compile("adam", loss=loss, metrics=[metric])
""",
        only="VEC005",
    )


def test_one_hot_labels() -> None:
    """Many classes or a vocabulary; not few, other losses, or smoothed labels."""
    head = "import keras\nmodel = keras.Sequential([keras.layers.Dense(9)])\nN = 5000\n"
    fit = "model.compile(loss='categorical_crossentropy')\n"
    encode = "labels = keras.utils.to_categorical(y, num_classes={})\n"
    assert codes(head + fit + encode.format("N")) == ["VEC006"]
    assert codes(head + fit + "size = len(tokenizer.word_index) + 1\n" + encode.format("size")) == ["VEC006"]
    assert codes(head + fit + encode.format("10")) == []
    assert codes(head + fit + encode.format("unknown")) == []
    assert codes(head + "model.compile(loss='mse')\n" + encode.format("N")) == []
    smooth = "model.compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1))\n"
    assert codes(head + smooth + encode.format("N")) == []


def test_arrays_that_grow() -> None:
    """By any of the functions; not few times, once in a while, windows, or two others."""
    assert_expected(
        HEAD
        + """
rows, window, table = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3))
for step in range(1000):
    rows = np.append(rows, step)  # expect: VEC003
    points = tf.concat([points, points], axis=0)  # expect: VEC003
    window = np.vstack((window, rows))
    window = window[-10:]
    other = np.concatenate([rows, rows])
    if step % 100 == 0:
        table = np.vstack((table, rows))
for step in range(50):
    rows = np.append(rows, step)
"""
    )


def test_elements_of_arrays() -> None:
    """Two loops and both indices; not few, neighbours, unknown calls, or programs without a framework."""
    text = """
import numpy as np
{}
a, b = np.random.rand(500, 500), np.zeros((500, 500))
for i in range(500):  # expect: NPY003
    for j in range(500):
        b[i, j] = a[i][j] * 2 if a[i, j] > 0.5 else 0

for i in range(500):
    for j in range(500):
        b[i, j] = b[i - 1, j] + a[i, j]

for i in range(500):
    for j in range(500):
        b[i, j] = distance(a[i, j])

for i in range(4):
    for j in range(500):
        b[i, j] = a[i, j]

for i in range(500):
    for j in range(500):
        unknown[i, j] = 0
"""
    assert_expected(text.format("import tensorflow as tf"))
    assert codes(text.format("")) == []


def test_elements_that_take_time_are_a_warning() -> None:
    """Many elements that are gone through again and again, also through calls, or very many once."""
    text = """
import numpy as np
import tensorflow as tf

def clean(frame):
    out = np.zeros(({n}, 100))
    for r in range({n}):
        for c in range(100):
            out[r, c] = 1 / frame[r, c] if frame[r, c] > 0.4 else 0
    return out

frames = np.random.rand(300, {n}, 100)
{use}
"""

    def told(use: str, n: int | str = 80) -> list[str]:
        return [h.severity for h in hits(text.format(n=n, use=use)) if h.code == "NPY003"]

    assert told("x = np.stack([clean(f) for f in frames])") == ["warning"]
    assert told("for f in frames:\n    clean(f)") == ["warning"]
    assert told("clean(frames[0])") == ["info"]
    assert told("for i in range(3):\n    clean(frames[i])") == ["info"]
    assert told("clean(frames[0])", n=20_000) == ["warning"]
    assert told("clean(frames[0])", n="len(frame)") == ["info"]


def test_what_is_assigned_to_is_a_list() -> None:
    """A tensor's elements cannot be assigned, so that what they are assigned to holds tensors and is none."""
    text = (
        "import tensorflow as tf\ndef f(x: tf.Tensor):\n    rows = tf.matmul(x, x)\n{store}"
        "    return [tf.square(row) for row in rows]\n"
    )
    assert codes(text.format(store="")) == ["VEC002"]
    assert codes(text.format(store="    rows[0] = x\n")) == []
    assert codes(text.format(store="    other[0] = x\n")) == ["VEC002"]
    assert codes(f"{text.format(store='')}def g(rows):\n    rows[0] = 1\n") == ["VEC002"]


def test_rows_that_are_only_copied_are_no_warning() -> None:
    """An element of a Dataset that goes into an array row by row: a copy of a batch; with an op on each row it is one."""
    text = """
import numpy as np
import tensorflow as tf
batch = np.zeros([8, 64], "float32")
data = tf.data.Dataset.from_tensor_slices(tf.zeros([640, 64])).batch(8)
for images in data:
    for i, image in enumerate(images):
        batch[i] = {row}
"""
    of = {row: [h.severity for h in hits(text.format(row=row)) if h.code == "VEC002"] for row in ("image", "image * 2")}
    assert of == {"image": ["info"], "image * 2": ["warning"]}


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("isinstance(points, (list, tuple))", False),
        ("isinstance(points, list) and axis == 0", False),
        ("isinstance(points, (list, tf.Tensor))", True),
        ("axis == 0", True),
    ],
)
def test_what_is_asked_to_be_a_list_is_no_tensor(test: str, told: bool) -> None:
    """Behind ``isinstance(points, list)`` the elements are tensors, not rows of one."""
    text = (
        f"{HEAD}axis = 0\nif {test}:\n    total = points[0]\n    for x in points[1:]:\n        total += tf.square(x)\n"
    )
    assert ("VEC002" in codes(text)) is told


@pytest.mark.parametrize(
    ("rows", "told"),
    [("tf.nn.relu(inputs)", True), ("tf.square(inputs - self.gain)", True), ("tf.nn.relu(self.gain)", False)],
)
def test_a_loop_over_weights_is_none_over_the_batch(rows: str, told: bool) -> None:
    """One weight for each of several inputs; what is computed of the input has its rows."""
    text = f"""
import tensorflow as tf

class Weighted(tf.keras.layers.Layer):
    def build(self, shape):
        self.total = len(shape)
        self.gain = self.add_weight(name="gain", shape=(self.total,))

    def call(self, inputs):
        rows = {rows}
        out = 0.0
        for i in range(tf.shape(rows)[0]):
            out += rows[i] * 2.0
        return out
"""
    assert ("VEC005" in codes(text)) is told
