"""Trains with a loss of its own: the distance between target and prediction."""

import json
import time

import numpy as np
import tensorflow as tf

BATCH = 128


def distance(y_true, y_pred):
    return tf.reduce_mean(tf.norm(y_true - y_pred, axis=-1))


tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x, y = rng.random((BATCH * 30, 32)).astype("float32"), rng.random((BATCH * 30, 32)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(32)])
model.compile("sgd", loss=distance)

start = time.perf_counter()
history = model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": round(history.history["loss"][-1], 3)}))
