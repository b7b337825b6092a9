"""A small model that trains for some steps before a program hangs."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

ROWS = np.ones((32, 8), np.float32)
LABELS = np.ones((32, 1), np.float32)


def compiled() -> "tf.keras.Model":
    """A compiled model of two layers."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def dataset(generator: object) -> "tf.data.Dataset":
    """Batches of a generator."""
    signature = (tf.TensorSpec((32, 8), tf.float32), tf.TensorSpec((32, 1), tf.float32))
    return tf.data.Dataset.from_generator(generator, output_signature=signature)
