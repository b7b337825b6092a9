"""Order: nine of ten elements are thrown away after the work."""

import harness
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(1)
images = generator.integers(0, 255, (600, 48, 48, 3), dtype=np.uint8)
labels = np.arange(600, dtype=np.int32) % 10


def augment(image, label):
    image = tf.image.random_flip_left_right(tf.cast(image, tf.float32))
    return tf.image.resize(tf.image.random_contrast(image, 0.5, 1.5), (64, 64)) / 255.0, label


def wanted(image, label):
    return label == 3


def pipeline():
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return dataset.repeat().map(augment).filter(wanted).batch(12).prefetch(2)


def made(order, calls):
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
    if order == "filter, map":
        dataset = dataset.filter(wanted).map(augment, num_parallel_calls=calls)
    else:
        dataset = dataset.map(augment, num_parallel_calls=calls).filter(wanted)
    return dataset.batch(12).prefetch(2)


GRID = {
    f"{order}; calls={calls}": lambda order=order, calls=calls: made(order, calls)
    for order in ("map, filter", "filter, map")
    for calls in (None, 2, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 5)
