"""Caches its images after they are made into floats; argument: number of images."""

import sys

import tensorflow as tf

COUNT = int(sys.argv[1])


def decode(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """An image of its number, as floats."""
    seed = tf.stack([number, 7])
    image = tf.random.stateless_uniform((128, 128, 3), seed, 0, 255, tf.int32)
    return tf.cast(image, tf.float32) / 255.0, number % 10


def make_dataset() -> tf.data.Dataset:
    """The images in batches."""
    images = tf.data.Dataset.range(COUNT).map(decode, num_parallel_calls=2)
    images = images.cache()
    return images.shuffle(200).batch(32).prefetch(2)


model = tf.keras.Sequential(
    [
        tf.keras.Input((128, 128, 3)),
        tf.keras.layers.Conv2D(16, 5, strides=4, activation="relu"),
        tf.keras.layers.Conv2D(64, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(make_dataset(), epochs=2, verbose=2)
print("done", flush=True)
