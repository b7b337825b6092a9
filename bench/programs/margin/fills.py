"""Trains for three seconds, then fills memory: ``fills.py MIB MIB_PER_S``, 0 MiB/s for at once; holds it for three."""

import sys
import time

import numpy as np
import tensorflow as tf

FILLED, RATE = int(sys.argv[1]), float(sys.argv[2])
weights = tf.Variable(tf.random.normal([256, 256]))
batch = tf.random.normal([256, 256])


@tf.function
def step(x):
    weights.assign_sub(0.001 * tf.matmul(x, weights, transpose_a=True))


def train(until):
    while time.monotonic() < until:
        step(batch)
        time.sleep(0.005)


train(time.monotonic() + 3)
kept = []
began = time.monotonic()
for number in range(FILLED):
    kept.append(np.full(1 << 20, 7, np.uint8))
    if RATE:
        train(began + (number + 1) / RATE)
train(time.monotonic() + 3)
