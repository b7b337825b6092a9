"""Ten programs as an expert tunes them for a CPU, and as they were before: ``tuned.py NAME tuned|untuned [SECONDS]``.

Each computes the same amount of useful work per sample both ways; what differs is in the docstring of its function.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import tensorflow as tf

Step = Callable[[], object]


def products(*, tuned: bool) -> Step:
    """One batched product; untuned: a product for each of 256 pairs of small matrices."""
    a, b = tf.random.uniform((256, 64, 64)), tf.random.uniform((256, 64, 64))
    if tuned:
        return tf.function(lambda: [tf.matmul(a, b, transpose_b=flip) for flip in (False, True)] * 1)
    return tf.function(lambda: tf.stack([tf.matmul(a[i], b[i]) for i in range(256)]))


def convolution(*, tuned: bool) -> Step:
    """A small convolutional network in batches of 64; untuned: one image at a time."""
    layers = [tf.keras.layers.Conv2D(width, 3, padding="same", activation="relu") for width in (32, 64, 64)]
    model = tf.keras.Sequential([tf.keras.Input((16, 16, 16)), *layers, tf.keras.layers.GlobalAveragePooling2D()])
    return _training(model, tf.random.uniform((64 if tuned else 1, 16, 16, 16)))


def precision(*, tuned: bool) -> Step:
    """Wide layers in float32; untuned: in float64."""
    kind = "float32" if tuned else "float64"
    layers = [tf.keras.layers.Dense(1024, activation="relu", dtype=kind) for _ in range(3)]
    model = tf.keras.Sequential([tf.keras.Input((1024,), dtype=kind), *layers])
    return _training(model, tf.random.uniform((256, 1024), dtype=kind))


def dense(*, tuned: bool) -> Step:
    """Layers with bias and activation that TensorFlow fuses, all cores; untuned: one thread."""
    if not tuned:
        tf.config.threading.set_intra_op_parallelism_threads(1)
    layers = [tf.keras.layers.Dense(1536, activation="relu") for _ in range(3)]
    model = tf.keras.Sequential([tf.keras.Input((1536,)), *layers])
    data = tf.random.uniform((512, 1536))
    return tf.function(lambda: model(data))


def lstm(*, tuned: bool) -> Step:
    """A recurrent layer over 128 sequences; untuned: over 2, in a loop unrolled in the graph."""
    layer = tf.keras.layers.LSTM(512 if tuned else 64, unroll=not tuned)
    model = tf.keras.Sequential([tf.keras.Input((24, 128)), layer])
    return _training(model, tf.random.uniform((128 if tuned else 2, 24, 128)))


def transformer(*, tuned: bool) -> Step:
    """A block of attention and two wide layers, 32 sentences; untuned: one sentence, a head at a time."""
    given = tf.keras.Input((64, 256))
    if tuned:
        seen = tf.keras.layers.MultiHeadAttention(4, 64)(given, given)
    else:
        heads = [tf.keras.layers.MultiHeadAttention(1, 8)(given, given) for _ in range(16)]
        seen = tf.keras.layers.Add()(heads)
    wide = tf.keras.layers.Dense(1024, activation="relu")(given + seen)
    model = tf.keras.Model(given, tf.keras.layers.Dense(256)(wide))
    return _training(model, tf.random.uniform((32 if tuned else 1, 64, 256)))


def embedding(*, tuned: bool) -> Step:
    """One look-up of all words; untuned: a look-up and a sum for each position."""
    table = tf.random.uniform((20_000, 256))
    words = tf.random.uniform((256, 128), 0, 20_000, tf.int32)
    if tuned:
        return tf.function(lambda: tf.reduce_sum(tf.gather(table, words), 1))
    few = words[:2]
    return tf.function(lambda: tf.add_n([tf.gather(table, few[:, i]) for i in range(128)]))


def depthwise(*, tuned: bool) -> Step:
    """A depthwise and a pointwise convolution, 32 images; untuned: one image, channels in groups of their own."""
    size = 32 if tuned else 1
    data = tf.random.uniform((size, 32, 32, 64))
    if tuned:
        deep, wide = tf.random.uniform((3, 3, 64, 1)), tf.random.uniform((1, 1, 64, 128))
        return tf.function(lambda: tf.nn.conv2d(tf.nn.depthwise_conv2d(data, deep, [1] * 4, "SAME"), wide, 1, "SAME"))
    kernels = tf.random.uniform((64, 3, 3, 1, 1))
    return tf.function(
        lambda: tf.concat([tf.nn.conv2d(data[..., i : i + 1], kernels[i], 1, "SAME") for i in range(64)], -1)
    )


def normalisation(*, tuned: bool) -> Step:
    """One fused normalisation of a batch; untuned: in the other layout, with transposes around moments by hand."""
    data = tf.random.uniform((64, 32, 32, 64))
    scale, offset = tf.ones(64), tf.zeros(64)
    if tuned:
        return tf.function(lambda: tf.compat.v1.nn.fused_batch_norm(data, scale, offset, is_training=True)[0])
    turned = tf.transpose(data, (0, 3, 1, 2))

    def by_hand() -> tf.Tensor:
        back = tf.transpose(turned, (0, 2, 3, 1))
        mean, variance = tf.nn.moments(back, (0, 1, 2))
        return tf.transpose(tf.nn.batch_normalization(back, mean, variance, offset, scale, 1e-3), (0, 3, 1, 2))

    return tf.function(by_hand)


def top(*, tuned: bool) -> Step:
    """The ten best of each of 512 rows at once; untuned: row by row."""
    data = tf.random.uniform((512, 4096))
    if tuned:
        return tf.function(lambda: tf.math.top_k(data, 10))
    few = data[:128, :256]
    return tf.function(lambda: tf.stack([tf.math.top_k(few[i], 10).values for i in range(128)]))


def _training(model: tf.keras.Model, data: tf.Tensor) -> Step:
    """A step of gradient descent."""

    @tf.function
    def train_step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data, training=True)))
        for weights, slope in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            weights.assign_sub(tf.cast(1e-4, slope.dtype) * slope)
        return loss

    return train_step


PROGRAMS: dict[str, Callable[..., Step]] = {
    made.__name__: made
    for made in (
        products, convolution, precision, dense, lstm, transformer, embedding, depthwise, normalisation, top,
    )
}  # fmt: skip


def main() -> None:
    """Run one program for some seconds."""
    name, way, *rest = sys.argv[1:]
    seconds = float(rest[0]) if rest else 6.0
    step = PROGRAMS[name](tuned=way == "tuned")
    step()
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        step()
        count += 1
    print(f"{name} {way}: {count} steps in {seconds:g} s")


if __name__ == "__main__":
    main()
