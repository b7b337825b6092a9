"""A short Keras fit with Python in its input: fits.py INPUT [forced].

The input repeats without end, as most do: when the fit is done, calls of the Python functions are under way.

``forced``: garbage is collected by nobody, and stepscope, where it is there, looks at the memory at every tick.
"""

import gc
import itertools
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from work import last, say

BATCHES, BATCH, WIDTH = 12, 8, 16
AHEAD = 40
"""Batches that the input makes ahead: it is still at work when the program ends."""
GROWTH_BYTES, GROWS_AT = 400 << 20, BATCHES - 5
"""Memory that a late batch of the last epoch takes: past the next size at which stepscope looks what holds it."""


def example(number):
    """One row and its target, all alike: threads of the input may overtake each other. It waits as for a file."""
    time.sleep(0.01)
    return np.full(WIDTH, 0.5, np.float32), np.ones(1, np.float32)


def typed(row, target):
    return tf.ensure_shape(row, (WIDTH,)), tf.ensure_shape(target, (1,))


def numpy_function():
    numbers = tf.data.Dataset.range(BATCHES * BATCH).repeat()
    rows = numbers.map(
        lambda n: typed(*tf.numpy_function(example, [n], (tf.float32, tf.float32))), num_parallel_calls=2
    )
    return rows.batch(BATCH).prefetch(AHEAD)


def py_function():
    numbers = tf.data.Dataset.range(BATCHES * BATCH).repeat()
    rows = numbers.map(lambda n: typed(*tf.py_function(example, [n], (tf.float32, tf.float32))), num_parallel_calls=2)
    return rows.batch(BATCH).prefetch(AHEAD)


def from_generator():
    shapes = (tf.TensorSpec((WIDTH,), tf.float32), tf.TensorSpec((1,), tf.float32))
    rows = tf.data.Dataset.from_generator(lambda: map(example, itertools.count()), output_signature=shapes)
    return rows.batch(BATCH).prefetch(AHEAD)


class Rows(keras.utils.PyDataset):
    """Batches made in Python, by threads."""

    def __len__(self):
        return 100 * BATCHES

    def __getitem__(self, at):
        rows = [example(number) for number in range(at * BATCH, (at + 1) * BATCH)]
        return tuple(np.stack(part) for part in zip(*rows))


def py_dataset():
    return Rows(workers=2, use_multiprocessing=False, max_queue_size=AHEAD)


class Grows(keras.callbacks.Callback):
    """Takes memory late in the last epoch, as a cache or a checkpoint does."""

    held = []

    def on_epoch_begin(self, epoch, logs=None):
        self.last = epoch == self.params["epochs"] - 1

    def on_train_batch_begin(self, batch, logs=None):
        if self.last and batch == GROWS_AT:
            self.held.append(np.ones(GROWTH_BYTES, np.uint8))


def force():
    """Make a look due at every tick, where stepscope watches this process."""
    gc.disable()
    watch = sys.modules.get("stepscope.agent.probes.python.memory_watch")
    if watch is not None:
        watch.EVERY_NS, watch.MOST_LOOKS = 0, 1 << 30
        watch.Watch._reason = lambda *_: "grown"


keras.utils.set_random_seed(1)
if "forced" in sys.argv:
    force()
model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = globals()[sys.argv[1]]()
history = model.fit(data, epochs=3, steps_per_epoch=BATCHES, verbose=0, callbacks=[Grows()], shuffle=False)
say(f"loss {history.history['loss'][-1]:.4f}")
last()
