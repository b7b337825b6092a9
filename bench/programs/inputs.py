"""Keras fit with an input of known cost, or its twin whose batches are ready; says samples, seconds and the cost."""

import argparse
import json
import time

import numpy as np
import tensorflow as tf

BATCH = 32
WARM = 10
WIDTH = 128
spent = []
"""Seconds that each call of a costly Python function took."""


def pause(seconds):
    began = time.perf_counter()
    time.sleep(seconds)
    spent.append(time.perf_counter() - began)


def slow_numpy(row):
    pause(0.0015)
    return row


def slow_py(row):
    pause(0.0015)
    return row


def slow_rows():
    while True:
        for row in rows:
            pause(0.0015)
            yield row


class Clock(tf.keras.callbacks.Callback):
    """Times the steps from the end of the WARM-th to the end of the last: neither fit's start nor its end."""

    def on_train_batch_end(self, batch, logs=None):
        self.ended = time.perf_counter()
        if batch == WARM:
            self.began = self.ended
            spent.clear()


class SlowBatches(getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        pause(0.048)
        at = index * BATCH % len(rows)
        batch = rows[at : at + BATCH]
        return batch, batch[:, :1]


def slow_ops(batch):
    noise = tf.sort(tf.random.uniform((600_000,)))
    return batch + 0.0 * noise[0]


def costly():
    """Batches that cost what their kind costs."""
    source = tf.data.Dataset.from_tensor_slices(rows).repeat()
    if args.input == "numpy_function":
        return source.map(lambda r: tf.ensure_shape(tf.numpy_function(slow_numpy, [r], tf.float32), (WIDTH,))).batch(BATCH)
    if args.input == "py_function":
        return source.map(lambda r: tf.ensure_shape(tf.py_function(slow_py, [r], tf.float32), (WIDTH,))).batch(BATCH)
    if args.input == "generator":
        return tf.data.Dataset.from_generator(slow_rows, output_signature=tf.TensorSpec((WIDTH,), tf.float32)).batch(BATCH)
    return source.batch(BATCH).map(slow_ops)


def dataset():
    """What fit is given."""
    if args.twin:
        ready = tf.data.Dataset.from_tensor_slices(rows).batch(BATCH).map(lambda b: (b, b[:, :1])).cache()
        return ready.repeat().prefetch(2)
    if args.input == "pydataset":
        return SlowBatches()
    batches = costly().map(lambda b: (b, b[:, :1]))
    return batches.prefetch(2) if args.prefetch else batches


parser = argparse.ArgumentParser()
parser.add_argument("--input", choices=("numpy_function", "py_function", "generator", "pydataset", "ops"), required=True)
parser.add_argument("--prefetch", action="store_true")
parser.add_argument("--twin", action="store_true", help="batches that are ready")
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()
tf.keras.utils.set_random_seed(1)
rows = np.random.default_rng(1).standard_normal((BATCH * 40, WIDTH)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(256, "relu") for _ in range(2)] + [tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = dataset()
model.fit(data, steps_per_epoch=10, verbose=0)
clock = Clock()
model.fit(data, steps_per_epoch=args.steps, verbose=0, callbacks=[clock])
steps = args.steps - 1 - WARM
seconds = clock.ended - clock.began
print(json.dumps({"samples": steps * BATCH, "seconds": seconds, "steps": steps, "known_s": sum(spent), "calls": len(spent)}))
