"""Keras fit with an input of known cost, or its twin whose batches are ready; says samples, seconds and the cost."""

import argparse
import json
import time

import numpy as np
import tensorflow as tf

BATCH = 32
WIDTH = 512
spent = []
"""Seconds that each call of a costly Python function took."""


def pause(seconds):
    began = time.perf_counter()
    time.sleep(seconds)
    spent.append(time.perf_counter() - began)


def slow_numpy(row):
    pause(0.0005)
    return row


def slow_py(row):
    pause(0.0005)
    return row


def slow_rows():
    while True:
        for row in rows:
            pause(0.0005)
            yield row


class SlowBatches(getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        pause(0.016)
        at = index * BATCH % len(rows)
        batch = rows[at : at + BATCH]
        return batch, batch[:, :1]


def slow_ops(batch):
    noise = tf.sort(tf.random.uniform((200_000,)))
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
model = tf.keras.Sequential([tf.keras.layers.Dense(1024, "relu") for _ in range(4)] + [tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = dataset()
model.fit(data, steps_per_epoch=10, verbose=0)
spent.clear()
began = time.perf_counter()
model.fit(data, steps_per_epoch=args.steps, verbose=0)
seconds = time.perf_counter() - began
print(json.dumps({"samples": args.steps * BATCH, "seconds": seconds, "known_s": sum(spent), "calls": len(spent)}))
