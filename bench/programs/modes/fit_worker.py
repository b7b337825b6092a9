"""A worker of MultiWorkerMirroredStrategy that trains with Keras' ``fit``; TF_CONFIG says which.

``fit_worker.py [SLOW]``: worker SLOW sleeps 30 ms in a callback of each batch.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
SLOW = int(sys.argv[1]) if len(sys.argv) > 1 else -1
BATCH = 64
"""Rows of a step of all workers."""


class Sleeps(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(0.03)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(256, "relu") for _ in range(3)] + [tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.random.default_rng(0).random((2048, 64), np.float32)
    rows = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(BATCH).repeat()
    model.fit(rows, steps_per_epoch=75, epochs=4, verbose=0, callbacks=[Sleeps()] if INDEX == SLOW else [])


main()
