"""Shuffles images after they are decoded; argument: size of the shuffle buffer."""

import sys

import tensorflow as tf

BUFFER = int(sys.argv[1])


def decode(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """An image of its number, as floats."""
    seed = tf.stack([number, 3])
    image = tf.random.stateless_uniform((160, 160, 3), seed, 0, 255, tf.int32)
    return tf.cast(image, tf.float32) / 255.0, number % 10


data = tf.data.Dataset.range(1_000_000).map(decode, num_parallel_calls=2)
data = data.shuffle(BUFFER)
data = data.batch(16).prefetch(1)
model = tf.keras.Sequential(
    [
        tf.keras.Input((160, 160, 3)),
        tf.keras.layers.Conv2D(16, 5, strides=4, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=1, steps_per_epoch=300, verbose=2)
print("done", flush=True)
