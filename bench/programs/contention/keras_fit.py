"""``fit`` of a convolutional net on images in memory: compute. Usage: keras_fit.py EPOCHS."""

import json
import sys
import time

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x, y = rng.random((1024, 32, 32, 3), dtype="float32"), rng.integers(0, 10, 1024)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((32, 32, 3)),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Conv2D(48, 3, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x[:128], y[:128], batch_size=64, verbose=0)
began = time.perf_counter()
model.fit(x, y, batch_size=64, epochs=int(sys.argv[1]), verbose=0)
print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
