"""Squares by processes that are forked before the parent uses TensorFlow."""

import json
import multiprocessing
import time

import tensorflow as tf


def square(values):
    return float(tf.reduce_sum(tf.linalg.matmul(tf.constant(values), tf.constant(values))))


if __name__ == "__main__":
    start = time.perf_counter()
    pool = multiprocessing.Pool(2)
    ready = tf.linalg.matmul(tf.ones([512, 512]), tf.ones([512, 512]))
    results = pool.map_async(square, [[[1.0] * 512] * 512] * 4)
    try:
        result = sum(results.get(timeout=8))
    except multiprocessing.TimeoutError:
        result = "hangs"
    seconds = time.perf_counter() - start
    pool.terminate()
    print(json.dumps({"seconds": seconds, "result": result}))
