"""Order: a function of three ops is called for every row."""

import harness
import numpy as np
import tensorflow as tf

rows = np.random.default_rng(1).standard_normal((8192, 32)).astype("float32")


def scale(row):
    return (row - 0.5) * 2.0


def pipeline():
    dataset = tf.data.Dataset.from_tensor_slices(rows).shuffle(2048)
    return dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE).batch(256).repeat().prefetch(tf.data.AUTOTUNE)


def made(order, calls):
    dataset = tf.data.Dataset.from_tensor_slices(rows)
    if order == "map, cache, shuffle, batch":
        dataset = dataset.map(scale, num_parallel_calls=calls).cache().shuffle(2048).batch(256)
    elif order == "shuffle, batch, map":
        dataset = dataset.shuffle(2048).batch(256).map(scale, num_parallel_calls=calls)
    else:
        dataset = dataset.shuffle(2048).map(scale, num_parallel_calls=calls).batch(256)
    return dataset.repeat().prefetch(tf.data.AUTOTUNE)


GRID = {
    f"{order}; calls={calls}": lambda order=order, calls=calls: made(order, calls)
    for order in ("shuffle, map, batch", "shuffle, batch, map", "map, cache, shuffle, batch")
    for calls in (None, 2, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 32)
