"""Cache: Python makes every row again in each pass."""

import harness
import numpy as np
import tensorflow as tf

table = np.random.default_rng(1).standard_normal((1000, 64)).astype("float32")


def rows():
    for row in table:
        yield np.sort(row) * np.float32(0.5) + np.cumsum(row, dtype="float32")


def pipeline():
    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((64,), tf.float32))
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(1000))
    return dataset.shuffle(500).batch(50).repeat().prefetch(2)


def made(cache):
    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((64,), tf.float32))
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(1000))
    if cache == "rows":
        return dataset.cache().shuffle(500).batch(50).repeat().prefetch(2)
    return dataset.shuffle(500).batch(50).repeat().prefetch(2)


GRID = {f"cache={cache}": lambda cache=cache: made(cache) for cache in ("no", "rows")}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 20)
