"""Lengths of many vectors."""

import json
import time

import numpy as np
import tensorflow as tf

points = tf.constant(np.random.default_rng(1).standard_normal((2000, 64)), tf.float32)
tf.sqrt(tf.reduce_sum(tf.square(points[0])))
tf.sqrt(tf.reduce_sum(tf.square(points), axis=1))

start = time.perf_counter()
lengths = []
for i in range(points.shape[0]):
    lengths.append(tf.sqrt(tf.reduce_sum(tf.square(points[i]))))
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 5), "result": round(float(tf.reduce_sum(tf.stack(lengths))), 2)}))
