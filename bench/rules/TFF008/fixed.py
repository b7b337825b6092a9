"""A power by a loop in a tf.function."""

import json
import time

import tensorflow as tf


@tf.function
def power(x, n):
    result = tf.ones_like(x)
    for _ in tf.range(n):
        result = result * x
    return result


start = time.perf_counter()
result = power(tf.constant(1.01), tf.constant(40))
print(json.dumps({"seconds": time.perf_counter() - start, "result": round(float(result), 4)}))
