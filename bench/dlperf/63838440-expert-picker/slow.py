"""Multi-task regression: each task has its own small head, a mini-batch is one task."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(14)
TASKS = 90
FEATURES = 32
BATCH = 64
ROUNDS = 1

trunk = keras.Sequential(
    [
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(64, activation="relu"),
    ]
)
kernels = [tf.Variable(tf.random.normal((64, 1)) * 0.1) for _ in range(TASKS)]
scales = [0.5 + 0.1 * t for t in range(TASKS)]


def task_batch(rng, t):
    x = rng.normal(size=(BATCH, FEATURES)).astype("float32")
    y = scales[t] * x[:, t % FEATURES, None]
    return tf.constant(x), tf.constant(y)


@tf.function
def train_step(x, y, task):
    params = trunk.trainable_variables
    kernel = kernels[task]
    scale = scales[task]
    with tf.GradientTape() as tape:
        pred = scale * tf.matmul(trunk(x), kernel)
        loss = tf.reduce_mean(tf.square(pred - y))
    grads = tape.gradient(loss, params + [kernel])
    for v, g in zip(params, grads[:-1]):
        v.assign_sub(0.01 * g)
    kernel.assign_sub(0.01 * grads[-1])
    return loss


def main():
    rng = np.random.default_rng(14)
    train_step(*task_batch(rng, 0), 0)
    t0 = time.perf_counter()
    total = 0.0
    for _ in range(ROUNDS):
        for task in range(TASKS):
            x, y = task_batch(rng, task)
            total += float(train_step(x, y, task))
    seconds = time.perf_counter() - t0
    print("mean loss", total / (ROUNDS * TASKS))
    print(json.dumps({"samples": ROUNDS * TASKS * BATCH, "seconds": seconds}))


main()
