"""Trains on images with one dense layer straight after the images; argument: its units."""

import sys

import numpy as np
import tensorflow as tf

UNITS = int(sys.argv[1])
images = np.random.default_rng(1).random((512, 128, 128, 3), np.float32)
labels = np.arange(len(images)) % 10
model = tf.keras.Sequential(
    [
        tf.keras.Input((128, 128, 3)),
        tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(UNITS, activation="relu", name="hidden"),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, labels, batch_size=32, epochs=3, verbose=2)
print("done", flush=True)
