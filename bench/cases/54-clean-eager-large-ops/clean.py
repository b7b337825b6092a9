"""Fits a large linear operator eagerly: few, heavy operations, so compiling the step would gain nothing."""
import json
import time

import tensorflow as tf

tf.random.set_seed(71)
SIZE, BATCH, STEPS = 1400, 900, 170
truth = tf.random.normal((SIZE, SIZE)) / SIZE ** 0.5
operator = tf.Variable(tf.zeros((SIZE, SIZE)))


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ operator - y))
    operator.assign_sub(600.0 * tape.gradient(loss, operator))
    return loss


def batches(count):
    for index in range(count):
        x = tf.random.stateless_normal((BATCH, SIZE), seed=(index, 1))
        yield x, x @ truth


fixed = list(batches(6))
step(*fixed[0])
start = time.perf_counter()
for i in range(STEPS):
    loss = step(*fixed[i % len(fixed)])
print("loss", float(loss))
print(json.dumps({"samples": STEPS * BATCH, "seconds": round(time.perf_counter() - start, 3)}))
