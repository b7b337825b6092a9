"""Rows are scaled by the ops of TensorFlow."""

import json
import time

import numpy as np
import tensorflow as tf

rows = np.random.default_rng(0).integers(0, 255, (8_000, 64)).astype("float32")


def load(x):
    y = tf.math.log1p(tf.abs(x))
    return tf.ensure_shape(y, [64])


batches = tf.data.Dataset.from_tensor_slices(rows).map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(64).prefetch(2)

for _ in batches.take(20):
    pass
total = 0.0
begin = time.perf_counter()
for _epoch in range(3):
    total += float(batches.reduce(np.float32(0), lambda s, b: s + b[0, 0]))
print(json.dumps({"seconds": time.perf_counter() - begin, "result": round(total, 1)}))
