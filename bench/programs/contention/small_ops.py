"""Many independent small products in one graph, a loop of the user's around it. Usage: small_ops.py STEPS."""

import json
import sys
import time

import tensorflow as tf

weights = [tf.Variable(tf.random.normal((96, 96)) * 0.1) for _ in range(24)]


@tf.function
def step(x: tf.Tensor) -> tf.Tensor:
    """One step of gradient descent of all of them."""
    with tf.GradientTape() as tape:
        outs = []
        for weight in weights:
            h = x
            for _ in range(6):
                h = tf.tanh(h @ weight)
            outs.append(tf.reduce_mean(h * h))
        loss = tf.add_n(outs)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
    return loss


batches = iter(tf.data.Dataset.from_tensors(tf.random.normal((48, 96))).repeat())
for _ in range(10):
    step(next(batches))
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    loss = step(next(batches))
float(loss)
print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
