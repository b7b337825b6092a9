"""Makes dense vectors of 50,000 classes for all its labels; argument: number of labels."""

import sys

import numpy as np
import tensorflow as tf

COUNT, CLASSES = int(sys.argv[1]), 50_000


def encode(labels: np.ndarray) -> np.ndarray:
    """A row of zeros and a one for each label."""
    dense = np.zeros((len(labels), CLASSES), np.float32)
    dense[np.arange(len(labels)), labels] = 1.0
    dense += 0.0
    return dense


generator = np.random.default_rng(1)
inputs = generator.random((COUNT, 64), np.float32)
targets = encode(generator.integers(0, CLASSES, COUNT))
model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(CLASSES)])
model.compile("sgd", tf.keras.losses.CategoricalCrossentropy(from_logits=True))
model.fit(tf.data.Dataset.from_tensors(0).repeat(20).map(lambda _: tf.constant(0)).batch(1).map(
    lambda _: (inputs[:32], targets[:32])
), epochs=1, verbose=2)
print("done", flush=True)
