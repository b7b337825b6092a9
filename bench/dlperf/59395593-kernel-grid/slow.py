"""Learned similarity kernel between two sets of sequences (set A x set B)."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(25)
A, B, L, D = 40, 40, 12, 16
STEPS = 50
WARMUP = 1

proj = tf.Variable(tf.random.normal((D, D)) * 0.3)
width = tf.Variable(1.0)


def kernel(set_a, set_b):
    pa = tf.einsum("nld,df->nlf", set_a, proj)
    pb = tf.einsum("nld,df->nlf", set_b, proj)

    def against(seq_a):
        def one(seq_b):
            d2 = tf.reduce_sum(tf.square(seq_a - seq_b), axis=-1)
            return tf.reduce_mean(tf.exp(-d2 / (1e-3 + width**2)))

        return tf.map_fn(one, pb)

    return tf.map_fn(against, pa)


@tf.function
def train_step(set_a, set_b, same):
    with tf.GradientTape() as tape:
        k = kernel(set_a, set_b)
        loss = tf.reduce_mean(tf.square(k - same))
    g = tape.gradient(loss, [proj, width])
    proj.assign_sub(0.1 * g[0])
    width.assign_sub(0.1 * g[1])
    return loss


def sets(rng):
    centres = rng.normal(size=(4, L, D)).astype("float32")
    ca, cb = rng.integers(0, 4, size=A), rng.integers(0, 4, size=B)
    a = centres[ca] + rng.normal(0, 0.3, size=(A, L, D)).astype("float32")
    b = centres[cb] + rng.normal(0, 0.3, size=(B, L, D)).astype("float32")
    same = (ca[:, None] == cb[None, :]).astype("float32")
    return tf.constant(a), tf.constant(b), tf.constant(same)


def main():
    rng = np.random.default_rng(25)
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            t0 = time.perf_counter()
        loss = float(train_step(*sets(rng)))
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * A * B, "seconds": seconds}))


main()
