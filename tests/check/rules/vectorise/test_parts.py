"""Loops over parts of tensors that are no rows: slices of inner axes, elements at places, single random numbers."""

from __future__ import annotations

from tests.check.checking import assert_expected, codes, hits

HEAD = """
import numpy as np
import tensorflow as tf

points = tf.random.normal([2000, 64])
values = points[:, 0]
"""


def test_parts_of_tensors_in_python() -> None:
    """Slices of inner axes, elements at given places, writes to variables, single random numbers, rows of arrays."""
    assert_expected(
        HEAD
        + """
out = []
cube = tf.random.normal([4, 64, 32])
waves = [tf.signal.fft(tf.cast(cube[:, :, c], tf.complex64)) for c in range(32)]  # expect: VEC002

places = np.zeros((500, 2), "int32")
for r, c in places:  # expect: VEC002
    out.append(points[r, c])

for r, c in unknown:  # expect: VEC002
    out.append(points[r, c])

for i in np.random.permutation(500):  # expect: VEC002
    out.append(points[i])

counts = tf.Variable(tf.zeros([500, 64]))
for i in range(500):  # expect: VEC002
    for j in range(64):
        counts[i, j].assign(values[i])

drawn = tf.stack([tf.random.uniform([], maxval=m) for m in values])  # expect: VEC002
drawn = tf.stack([tf.random.normal([]) for _ in range(500)])  # expect: VEC002
for i in range(500):  # expect: VEC002
    out.append(tf.random.uniform((1,), maxval=9, dtype=tf.int32))

for number in np.linspace(0, 1, 500):  # expect: VEC002
    out.append(tf.math.sin(number))

for a, b in zip(points, values):  # expect: VEC002
    out.append(a * b)

for row in tf.unstack(points):  # expect: VEC002
    out.append(tf.norm(row))

grid = tf.zeros([2000])
for i in range(2000):  # expect: VEC002
    grid = tf.tensor_scatter_nd_update(grid, [[i]], [values[i]])
""",
        only="VEC002",
    )


def test_parts_of_what_is_no_tensor() -> None:
    """Dictionaries, arrays that NumPy works on, few parts, fresh tensors of any size, objects that assign."""
    assert_expected(
        HEAD
        + """
out = []
cube = tf.random.normal([4, 64, 32])
found = model(points)
for name in names:
    out.append(tf.norm(found[name]))

for r, c in unknown:
    out.append(table[r, c])

array = np.zeros((500, 64))
for r, c in np.zeros((500, 2), "int32"):
    out.append(array[r, c])

for number in np.linspace(0, 1, 500):
    out.append(np.sin(number))

for i in range(500):
    array[i, 0] = array[i, 1]

for c in range(3):
    out.append(tf.norm(cube[:, c]))

noise = [tf.random.normal([64, 64]) for _ in range(500)]
for i in range(500):
    tf.random.uniform([])

for i in range(500):
    boxes[i, 0].assign(values)

for row in np.array_split(unknown, 10):
    out.append(tf.norm(row))

batches = [tf.constant(row) for row in array]

for i in np.arange(500):
    tf.norm(points * i)
""",
        only="VEC002",
    )


def test_graphs_of_version_1_are_built_in_python() -> None:
    """Without eager execution the loop runs once."""
    loop = "norms = [tf.norm(points[:, k]) for k in range(64)]\n"
    assert codes(HEAD + loop) == ["VEC002"]
    assert codes(HEAD + "tf.compat.v1.disable_eager_execution()\n" + loop) == []


def test_how_often_a_part_is_computed() -> None:
    """A warning for many parts in all: of nested loops, of a function that a loop calls; not if an axis may be short."""
    text = """
import tensorflow as tf

def pairs(x):
    rows = []
    for i in range({n}):
        rows.append(tf.stack([tf.norm(x[i] - x[j]) for j in range({n})]))
    return tf.stack(rows)

def channels(x):
    return [tf.norm(x[..., c]) for c in range({c})]

{around}pairs(tf.random.normal([50, 4]))
{around}channels(tf.random.normal([50, 4]))
"""

    def told(n: int = 12, c: str = "12", around: str = "") -> list[str]:
        found = hits(text.format(n=n, c=c, around=around))
        return [h.severity for h in sorted(found, key=lambda h: h.span.line) if h.code == "VEC002"]

    assert told() == ["warning", "info"]
    assert told(around="for step in range(9):\n    ") == ["warning", "warning"]
    assert told(c="n_channels(x)", around="for step in range(90):\n    ") == ["warning", "info"]
