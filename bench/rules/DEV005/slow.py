"""Squares by forked processes, after the parent has used TensorFlow; what hangs is given up after eight seconds."""

import json
import multiprocessing
import time

import tensorflow as tf


def square(values):
    return float(tf.reduce_sum(tf.linalg.matmul(tf.constant(values), tf.constant(values))))


if __name__ == "__main__":
    ready = tf.linalg.matmul(tf.ones([512, 512]), tf.ones([512, 512]))
    start = time.perf_counter()
    pool = multiprocessing.Pool(2)
    results = pool.map_async(square, [[[1.0] * 512] * 512] * 4)
    try:
        result = sum(results.get(timeout=8))
    except multiprocessing.TimeoutError:
        result = "hangs"
    seconds = time.perf_counter() - start
    pool.terminate()
    print(json.dumps({"seconds": seconds, "result": result}))
