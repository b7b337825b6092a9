"""Cache: what is the same in each pass is made again with what is drawn anew."""

import harness
import numpy as np
import tensorflow as tf

images = np.random.default_rng(1).integers(0, 255, (300, 96, 96, 3), dtype=np.uint8)


def decode(image):
    image = tf.image.resize(tf.cast(image, tf.float32), (160, 160), method="bicubic")
    return tf.image.resize(image, (40, 40)) / 255.0


def augment(image):
    return tf.image.random_flip_left_right(image)


def pipeline():
    dataset = tf.data.Dataset.from_tensor_slices(images)
    return (
        dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
        .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(30)
        .repeat()
        .prefetch(tf.data.AUTOTUNE)
    )


def made(cache, calls):
    dataset = tf.data.Dataset.from_tensor_slices(images)
    if cache == "before":
        dataset = dataset.cache()
    dataset = dataset.map(decode, num_parallel_calls=calls)
    if cache == "between":
        dataset = dataset.cache()
    return dataset.map(augment, num_parallel_calls=calls).batch(30).repeat().prefetch(tf.data.AUTOTUNE)


GRID = {
    f"cache={cache} calls={calls}": lambda cache=cache, calls=calls: made(cache, calls)
    for cache in ("no", "before", "between")
    for calls in (None, 2, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 10)
