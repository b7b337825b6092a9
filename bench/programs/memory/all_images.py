"""Reads all images into one list before it trains; argument: number of images."""

import sys

import numpy as np
import tensorflow as tf

COUNT = int(sys.argv[1])


def load_images(count: int) -> np.ndarray:
    """Draw the images one by one, as if from files."""
    generator = np.random.default_rng(1)
    images = []
    for _ in range(count):
        picture = generator.integers(0, 255, (160, 160, 3), np.uint8)
        images.append(picture.astype("float32") / 255.0)
    return np.array(images)


def main() -> None:
    """Load and train."""
    images = load_images(COUNT)
    labels = np.arange(len(images)) % 10
    model = tf.keras.Sequential(
        [
            tf.keras.Input((160, 160, 3)),
            tf.keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for start in range(0, len(images), 32):
        loss = model.train_on_batch(images[start : start + 32], labels[start : start + 32])
    print(loss)
    print("done", flush=True)


main()
