"""A Keras fit that goes on until the file that it is given exists.

With a second argument it rests in each step, and starts a profiler of its own, into that folder, once the folder exists
and it is profiled by somebody.
"""

import os
import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python.profiler.internal import _pywrap_traceme


class UntilTold(keras.callbacks.Callback):
    """Prints once, profiles when it shall, and ends the training when it may."""

    def __init__(self):
        super().__init__()
        self.batches = 0
        self.logs = sys.argv[2] if len(sys.argv) > 2 else None

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches == 20:
            print("ready", flush=True)
        if len(sys.argv) > 2:
            time.sleep(0.003)
        if self.logs and os.path.exists(self.logs) and _pywrap_traceme.traceme_enabled():
            tf.profiler.experimental.start(self.logs)
            self.logs = None
        if os.path.exists(sys.argv[1]):
            self.model.stop_training = True


keras.utils.set_random_seed(1)
data = tf.data.Dataset.from_tensor_slices((np.ones((256, 64), "float32"), np.ones((256, 1), "float32")))
model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data.repeat().batch(8), epochs=1, steps_per_epoch=10**6, verbose=0, callbacks=[UntilTold()])
if len(sys.argv) > 2:
    tf.profiler.experimental.stop()
print("done", flush=True)
