"""A loop of plain ops that calls, differentiates and reads nothing. Under the agent it runs until its op is recorded."""

import os
import time

import tensorflow as tf
from tensorflow.python.ops import gen_math_ops

TURNS = 20
matrix = tf.eye(8)
x = tf.ones((8, 1))
until = time.monotonic() + (90 if "STEPSCOPE_RUN" in os.environ else 0)
turns = 0
while turns < TURNS:
    y = tf.matmul(matrix, x)  # turn
    x = (y + y + y + y) / 4.0
    turns += hasattr(gen_math_ops.mat_mul, "__wrapped__")
    if time.monotonic() > until:
        break
print(x.numpy().ravel().tolist())
