"""A loop that makes each batch with numpy, then a small step. Usage: python_loop.py STEPS."""

import json
import sys
import time

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((128,)),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)
rng = np.random.default_rng(0)
base = rng.random((20000, 128), dtype="float32")


@tf.function
def train(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """One training step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


def batch() -> tuple[tf.Tensor, tf.Tensor]:
    """Rows at random, sorted and scaled."""
    x = np.sort(base[rng.integers(0, len(base), 256)], axis=1)
    x = (x - x.mean(0)) / (x.std(0) + 1e-6)
    return tf.constant(x.astype("float32")), tf.constant(x[:, :1].astype("float32"))


for _ in range(10):
    train(*batch())
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    loss = train(*batch())
float(loss)
print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
