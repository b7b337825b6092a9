"""Trains two epochs on rows from memory."""

import json
import time

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x, y = rng.random((640, 16)).astype("float32"), rng.random((640, 1)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x[:32], y[:32], verbose=0)

start = time.perf_counter()
rows = tf.data.Dataset.from_tensor_slices((x[:, None], y[:, None]))
model.fit(rows, epochs=2, verbose=0)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": model.count_params()}))
