"""Cache: every epoch prepares the same images again."""

import harness
import numpy as np
import tensorflow as tf

images = np.random.default_rng(1).integers(0, 255, (512, 64, 64, 3), dtype=np.uint8)


def prepare(image):
    image = tf.image.resize(tf.cast(image, tf.float32), (96, 96))
    return tf.image.resize(tf.image.adjust_contrast(image, 1.5), (32, 32)) / 255.0


def pipeline():
    return (
        tf.data.Dataset.from_tensor_slices(images)
        .shuffle(512)
        .map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(32)
        .repeat()
        .prefetch(tf.data.AUTOTUNE)
    )


def made(cache, calls):
    dataset = tf.data.Dataset.from_tensor_slices(images)
    if cache == "before":
        dataset = dataset.cache()
    if cache != "after":
        dataset = dataset.shuffle(512)
    dataset = dataset.map(prepare, num_parallel_calls=calls)
    if cache == "after":
        dataset = dataset.cache().shuffle(512)
    return dataset.batch(32).repeat().prefetch(tf.data.AUTOTUNE)


GRID = {
    f"cache={cache} calls={calls}": lambda cache=cache, calls=calls: made(cache, calls)
    for cache in ("no", "before", "after")
    for calls in (None, 2, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 512 // 32)
