"""Shards: every worker prepares all elements, and keeps its quarter."""

import harness
import numpy as np
import tensorflow as tf

images = np.random.default_rng(1).integers(0, 255, (400, 64, 64, 3), dtype=np.uint8)


def augment(image):
    image = tf.image.random_flip_up_down(tf.cast(image, tf.float32))
    return tf.image.resize(tf.image.random_saturation(image, 0.5, 1.5), (48, 48)) / 255.0


def pipeline():
    dataset = tf.data.Dataset.from_tensor_slices(images).map(augment)
    return dataset.shard(4, 1).batch(20).repeat().prefetch(tf.data.AUTOTUNE)


def made(order, calls):
    dataset = tf.data.Dataset.from_tensor_slices(images)
    if order == "shard, map":
        dataset = dataset.shard(4, 1).map(augment, num_parallel_calls=calls)
    else:
        dataset = dataset.map(augment, num_parallel_calls=calls).shard(4, 1)
    return dataset.batch(20).repeat().prefetch(tf.data.AUTOTUNE)


GRID = {
    f"{order}; calls={calls}": lambda order=order, calls=calls: made(order, calls)
    for order in ("map, shard", "shard, map")
    for calls in (None, 2, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 5)
