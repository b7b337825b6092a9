"""An LSTM over sequences, fitted from a tf.data pipeline: small ops, one after the other. Usage: lstm.py EPOCHS."""

import json
import sys
import time

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.random((1024, 60, 16), dtype="float32")
batches = tf.data.Dataset.from_tensor_slices((x, x.sum((1, 2)))).shuffle(1024).batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Input((60, 16)), tf.keras.layers.LSTM(64), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(batches.take(3), verbose=0)
began = time.perf_counter()
model.fit(batches, epochs=int(sys.argv[1]), verbose=0)
print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
