"""Marks the pairs whose score is high."""

import json
import time

import numpy as np
import tensorflow as tf

N = 400
scores = np.random.default_rng(1).random((N, N))

start = time.perf_counter()
mask = np.where(scores > 0.5, 1.0, 0.0)
seconds = time.perf_counter() - start
mask = tf.constant(mask)
print(json.dumps({"seconds": round(seconds, 5), "result": float(tf.reduce_sum(mask))}))
