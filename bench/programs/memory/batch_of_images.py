"""Trains a convolutional network on images of 192 x 192; argument: batch size."""

import sys

import numpy as np
import tensorflow as tf

BATCH = int(sys.argv[1])
IMAGES = np.random.default_rng(1).random((2 * BATCH, 192, 192, 3), np.float32)
LABELS = np.arange(len(IMAGES)) % 10


def make_model() -> tf.keras.Model:
    """Four convolutions with normalisation."""
    layers = [tf.keras.Input((192, 192, 3))]
    for filters in (12, 24):
        for _ in range(2):
            layers.append(tf.keras.layers.Conv2D(filters, 3, padding="same"))
            layers.append(tf.keras.layers.BatchNormalization())
            layers.append(tf.keras.layers.Activation("relu"))
        layers.append(tf.keras.layers.MaxPooling2D())
    layers += [tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10)]
    return tf.keras.Sequential(layers)


model = make_model()
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(IMAGES, LABELS, batch_size=BATCH, epochs=2, verbose=2)
print("done", flush=True)
