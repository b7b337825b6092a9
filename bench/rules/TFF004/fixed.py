"""Three hundred steps of a small simulation in a tf.function, in a loop over tf.range; the first call counts."""

import json
import time

import tensorflow as tf


@tf.function
def simulate(position, velocity):
    for _ in tf.range(300):
        force = -position - 0.1 * velocity
        velocity = velocity + 0.01 * force
        position = position + 0.01 * velocity
    return position


start = time.perf_counter()
result = tf.zeros([64])
for seed in range(20):
    result += simulate(tf.random.stateless_normal([64], [seed, 1]), tf.zeros([64]))
print(json.dumps({"seconds": time.perf_counter() - start, "result": round(float(tf.reduce_sum(result)), 3)}))
