"""Mini-batch k-means over image descriptors produced on the fly by a host-side extractor."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
K, DIM = 256, 128
BATCH = 4096
STEPS = 40
WARMUP = 4


def descriptors(steps):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(64, DIM)).astype("float32") * 3
    for _ in range(steps):
        which = rng.integers(0, 64, size=BATCH)
        d = centres[which] + rng.standard_normal((BATCH, DIM), dtype="float32")
        d = np.sign(d) * np.sqrt(np.abs(d))
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        d = np.sort(d, axis=1)
        yield d


def make_dataset():
    spec = tf.TensorSpec((BATCH, DIM), tf.float32)
    ds = tf.data.Dataset.from_generator(lambda: descriptors(STEPS + WARMUP), output_signature=spec)
    return ds


centres = tf.Variable(tf.random.normal((K, DIM)) * 0.1)
counts = tf.Variable(tf.zeros((K,)))


@tf.function
def update(batch):
    for _ in tf.range(2):
        d2 = tf.reduce_sum(centres**2, axis=1) - 2.0 * tf.matmul(batch, centres, transpose_b=True)
        nearest = tf.argmin(d2, axis=1, output_type=tf.int32)
        n = tf.math.unsorted_segment_sum(tf.ones((BATCH,)), nearest, K)
        s = tf.math.unsorted_segment_sum(batch, nearest, K)
        counts.assign_add(n)
        rate = (n / tf.maximum(counts, 1.0))[:, None]
        mean = s / tf.maximum(n, 1.0)[:, None]
        centres.assign(centres + rate * (mean - centres))
    return tf.reduce_mean(tf.reduce_min(d2, axis=1) + tf.reduce_sum(batch**2, axis=1))


def main():
    step = 0
    for batch in make_dataset():
        if step == WARMUP:
            t0 = time.perf_counter()
        inertia = float(update(batch))
        step += 1
    seconds = time.perf_counter() - t0
    print("inertia", inertia)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
