"""Prefetch: batches are made while nothing computes, and the step waits for a device while none is made."""

import harness
import numpy as np
import tensorflow as tf

images = np.random.default_rng(1).integers(0, 255, (256, 64, 64, 3), dtype=np.uint8)


def augment(image):
    image = tf.image.random_flip_left_right(tf.cast(image, tf.float32))
    return tf.image.resize(image, (48, 48)) / 255.0


def pipeline():
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.from_tensor_slices(images).repeat().batch(32)
    return dataset.map(augment).with_options(options)


def made(prefetch, calls):
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.from_tensor_slices(images).repeat().batch(32)
    dataset = dataset.map(augment, num_parallel_calls=calls).with_options(options)
    return dataset.prefetch(prefetch) if prefetch else dataset


GRID = {
    f"prefetch={prefetch} calls={calls}": lambda prefetch=prefetch, calls=calls: made(prefetch, calls)
    for prefetch in (0, 1, tf.data.AUTOTUNE)
    for calls in (None, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 8, device_s=0.006)
