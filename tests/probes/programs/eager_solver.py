"""A loop of plain ops that calls, differentiates and reads nothing. Under the agent it runs on for some seconds after
its op was picked, because the first calls may fall into a gap.
"""

import os
import time

import tensorflow as tf
from tensorflow.python.ops import gen_math_ops

TURNS, SECONDS = 20, 4.0
matrix = tf.eye(8)
x = tf.ones((8, 1))
until = time.monotonic() + (90 if "STEPSCOPE_RUN" in os.environ else 0)
turns, picked = 0, 0.0
before = gen_math_ops.mat_mul, gen_math_ops.real_div
while turns < TURNS or time.monotonic() < picked + SECONDS:
    x = (tf.matmul(matrix, x) + x + x + x) / 4.0  # turn
    if (gen_math_ops.mat_mul, gen_math_ops.real_div) != before:
        turns, picked = turns + 1, picked or time.monotonic()
    if time.monotonic() > until:
        break
print(x.numpy().ravel().tolist())
