"""Eager turns in which some of the work is known: an encoder is run four times on one batch, a variable is read for a
few of its rows. Under the agent it runs on until looks at its ops have ended.
"""

import os
import time

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe

LOOKS = 3
"""Looks after which the program ends: the first may fall into the making of its variables."""
name = "TFE_Py_FastPathExecute"
plain = vars(pywrap_tfe)[name]
weights = tf.Variable(tf.ones((512, 512)) / 512.0)
store = tf.Variable(tf.zeros((3000, 1000)))
rows = store[:2].assign(tf.ones((2, 1000)))  # from now on the variable is copied when it is read


@tf.function
def compiled(batch):
    return tf.reduce_sum(tf.matmul(batch, weights))


def encode(batch):
    return tf.nn.relu(tf.matmul(batch, weights))  # encode


def turn(number):
    batch = tf.constant(np.full((256, 512), number, np.float32))
    total = 0.0
    for _ in range(4):
        kept = encode(batch)
        noisy = kept * tf.random.uniform(())
        total += float(tf.reduce_sum(tf.matmul(noisy, noisy, transpose_b=True)))  # head
        total += float(compiled(batch))  # compiled
    part = store[: 2 + number % 2]  # part
    weights.assign_sub(weights / 1000.0)
    store.scatter_update(tf.IndexedSlices(tf.ones((1, 1000)), [number % 3000]))
    return total + float(tf.reduce_sum(part))


turns, looks, looking = 0, 0, False
until = time.monotonic() + (90 if "STEPSCOPE_RUN" in os.environ else 0)
while turns < 3 or (looks < LOOKS and time.monotonic() < until):
    turn(turns)
    turns += 1
    now = vars(pywrap_tfe)[name] is not plain
    looks += looking and not now
    looking = now
print("ended")
