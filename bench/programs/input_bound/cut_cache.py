"""Cache: a take after it ends each pass before the cache is full."""

import harness
import numpy as np
import tensorflow as tf

images = np.random.default_rng(1).integers(0, 255, (400, 64, 64, 3), dtype=np.uint8)


def prepare(image):
    image = tf.image.resize(tf.cast(image, tf.float32), (128, 128), method="bicubic")
    return tf.image.resize(image, (32, 32)) / 255.0


def pipeline():
    dataset = tf.data.Dataset.from_tensor_slices(images).map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.cache().take(320).batch(32).repeat().prefetch(tf.data.AUTOTUNE)


def made(order, calls):
    dataset = tf.data.Dataset.from_tensor_slices(images)
    dataset = dataset.map(prepare, num_parallel_calls=calls)
    dataset = {
        "cache, take": lambda: dataset.cache().take(320),
        "take, cache": lambda: dataset.take(320).cache(),
        "take": lambda: dataset.take(320),
    }[order]()
    return dataset.batch(32).repeat().prefetch(tf.data.AUTOTUNE)


GRID = {
    f"{order}; calls={calls}": lambda order=order, calls=calls: made(order, calls)
    for order in ("cache, take", "take, cache", "take")
    for calls in (None, 2, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 10)
