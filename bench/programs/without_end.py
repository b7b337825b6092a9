"""A Keras fit that goes on until it is ended, and prints when each chunk of steps began and ended, and its CPU time.

Lines of three numbers, in nanoseconds: CLOCK_MONOTONIC twice, then CPU time of the process.
"""

import time

import numpy as np
import tensorflow as tf

WIDTH, BATCH, CHUNK = 512, 256, 20


class Chunks(tf.keras.callbacks.Callback):
    """Prints chunks."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.monotonic_ns()
        self.used = time.process_time_ns()

    def on_epoch_end(self, epoch, logs=None):
        print(self.began, time.monotonic_ns(), time.process_time_ns() - self.used, flush=True)


rng = np.random.default_rng(1)
x = rng.standard_normal((BATCH * 4, WIDTH)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(BATCH).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(WIDTH, "relu") for _ in range(2)] + [tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, steps_per_epoch=CHUNK, epochs=10**9, verbose=0, callbacks=[Chunks()])
