"""A training that makes stacks hard to follow, until it is ended: Python calls native code, which calls Python again.

Input comes from a Python generator and a numpy_function; again and again a new model is built, so that its graphs are
traced while windows of native stacks go on. Python threads do the same to NumPy.
"""

import functools
import threading

import numpy as np
import tensorflow as tf

WIDTH, BATCH, STEPS = 64, 32, 40


def scaled(row):
    """What a numpy_function runs."""
    return np.apply_along_axis(lambda part: part / (1.0 + float(np.abs(part).max())), 0, row).astype("float32")


def rows():
    """What the dataset is made from."""
    rng = np.random.default_rng(3)
    while True:
        row = np.sort(rng.standard_normal((WIDTH, 4)).astype("float32"), axis=0)
        yield row[:, 0], functools.reduce(lambda a, b: a + float(b), row[:8, 1], 0.0)


def sorts():
    """A thread that has NumPy and sorted call Python back."""
    rng = np.random.default_rng(5)
    while True:
        words = [str(number) for number in rng.integers(0, 10**6, 200)]
        sorted(words, key=lambda word: sum(map(ord, word)))
        np.vectorize(len)(words)


def dataset():
    """A pipeline with Python in two places."""
    made = tf.data.Dataset.from_generator(
        rows, output_signature=(tf.TensorSpec((WIDTH,), tf.float32), tf.TensorSpec((), tf.float32))
    )
    return made.map(lambda x, y: (tf.ensure_shape(tf.numpy_function(scaled, [x], tf.float32), (WIDTH,)), y)).batch(BATCH)


threading.Thread(target=sorts, daemon=True).start()
number = 0
while True:
    number += 1
    layers = [tf.keras.layers.Dense(WIDTH, "relu") for _ in range(2 + number % 3)]
    model = tf.keras.Sequential([tf.keras.Input((WIDTH,)), *layers, tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(dataset(), steps_per_epoch=STEPS, epochs=2, verbose=0)
    print(number, flush=True)
