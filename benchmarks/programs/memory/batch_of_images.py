"""Trains a convolutional network on images of 96 x 96; argument: batch size."""

import sys

import numpy as np
import tensorflow as tf

BATCH = int(sys.argv[1])
IMAGES = np.random.default_rng(1).random((4 * BATCH, 96, 96, 3), np.float32)
LABELS = np.arange(len(IMAGES)) % 10


def make_model() -> tf.keras.Model:
    """Six convolutions with normalisation."""
    layers = [tf.keras.Input((96, 96, 3))]
    for filters in (32, 64):
        for _ in range(3):
            layers.append(tf.keras.layers.Conv2D(filters, 3, padding="same"))
            layers.append(tf.keras.layers.BatchNormalization())
            layers.append(tf.keras.layers.Activation("relu"))
        layers.append(tf.keras.layers.MaxPooling2D())
    layers += [tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10)]
    return tf.keras.Sequential(layers)


model = make_model()
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(IMAGES, LABELS, batch_size=BATCH, epochs=3, verbose=2)
print("done", flush=True)
