"""Keras' fit with run_eagerly, as it was left after debugging."""

import json
import time

import tensorflow as tf

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential(
    [tf.keras.Input((16,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)]
)
model.compile(tf.keras.optimizers.SGD(0.01), "mse", run_eagerly=True)
x = tf.random.stateless_normal([1600, 16], seed=[1, 2])
y = tf.reduce_sum(x, axis=1, keepdims=True)
model.fit(x, y, batch_size=32, shuffle=False, verbose=0)

start = time.perf_counter()
history = model.fit(x, y, batch_size=32, epochs=2, shuffle=False, verbose=0)
print(json.dumps({"seconds": time.perf_counter() - start, "result": round(history.history["loss"][-1], 3)}))
