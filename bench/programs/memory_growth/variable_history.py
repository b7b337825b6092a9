"""A loop that keeps a tf.Variable of each step. Arguments: steps, a file to make."""

import json
import sys
import time
from pathlib import Path

import tensorflow as tf

history = []


@tf.function
def update(weights: tf.Variable, x: tf.Tensor) -> None:
    """A step."""
    weights.assign_sub(0.01 * tf.matmul(x, tf.matmul(x, weights), transpose_a=True))


def main() -> None:
    """Work."""
    weights = tf.Variable(tf.random.normal((256, 256)))
    x = tf.random.normal((64, 256))
    Path(sys.argv[2]).touch()
    for _ in range(int(sys.argv[1])):
        update(weights, x)
        history.append(tf.Variable(weights))  # keeps
        time.sleep(0.005)
    print(json.dumps({"cpu_s": time.process_time()}))


main()
