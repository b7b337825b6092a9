"""Loops in traced code that compute one slice of a tensor after the other: expectations stand on the lines."""

from __future__ import annotations

from tests.check.checking import assert_expected


def test_slices_that_one_op_can_take() -> None:
    """Inner axes and rows, nested loops, comprehensions; not few, layers, recurrences, lists, or eager code."""
    assert_expected(
        """
import tensorflow as tf
B, COILS = 4, 32

@tf.function
def kspace(images: tf.Tensor):
    planes = []
    for b in range(B):
        coils = [tf.signal.fft2d(images[b, :, :, c]) for c in range(COILS)]  # expect: TFF004
        planes.append(tf.stack(coils, axis=-1))
    return tf.stack(planes)

@tf.function
def blur(images: tf.Tensor, kernel: tf.Tensor):
    out = []
    for c in range(64):  # expect: TFF004
        out.append(tf.matmul(images[..., c], kernel))
    few = [tf.matmul(images[..., c], kernel) for c in range(3)]
    layers = [model(images[..., c]) for c in range(64)]
    state = few[0]
    for t in range(64):
        state = tf.tanh(images[:, t] + state)
    other = [tf.matmul(images[..., c], kernel) for c in range(n)]
    picked = [tf.square(tables[c]) for c in range(64)]
    return tf.stack(out, -1)

@tf.function
def rows(x: tf.Tensor):
    total = 0.0
    for i in range(100):  # expect: TFF004
        total += tf.norm(x[i])
    return total

def eager(x: tf.Tensor):
    return tf.stack([tf.norm(x[:, i]) for i in range(64)])
""",
        only="TFF004",
    )
