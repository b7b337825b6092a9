"""A training loop whose step has a set length: products, and a wait as for a remote service.

``compare_job.py [--products N] [--wait-ms W] [--seconds S]``. For a slow-down of 8 %: 27 products instead of 25, or a
wait of 54 ms instead of 50.
"""

from __future__ import annotations

import argparse
import json
import time

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--products", type=int, default=25)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--wait-ms", type=float, default=0.0)
parser.add_argument("--seconds", type=float, default=5.0)
options = parser.parse_args()

tf.config.threading.set_intra_op_parallelism_threads(1)
weights = tf.Variable(tf.random.stateless_normal((options.width, options.width), (1, 2)) / options.width**0.5)
optimizer = tf.keras.optimizers.SGD(1e-4)


@tf.function  # type: ignore[untyped-decorator]
def train_step(batch: object) -> object:
    """One step of gradient descent."""
    with tf.GradientTape() as tape:
        hidden = batch
        for _ in range(options.products):
            hidden = tf.tanh(hidden @ weights)
        loss = tf.reduce_mean(tf.square(hidden - batch))
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    return loss


data = tf.data.Dataset.from_tensors(tf.random.stateless_normal((64, options.width), (3, 4))).repeat().prefetch(2)
ends, began = [], time.perf_counter()
for batch in data:
    if options.wait_ms:
        time.sleep(options.wait_ms / 1e3)
    train_step(batch)
    ends.append(time.perf_counter())
    if ends[-1] - began > options.seconds:
        break
steady = ends[10:]
print(json.dumps({"steps": len(ends), "mean_ms": 1e3 * (steady[-1] - steady[0]) / (len(steady) - 1)}))
