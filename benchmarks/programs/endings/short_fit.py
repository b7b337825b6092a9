"""A short fit with Python in its input, whose memory doubles in the middle: what kept its iterator alive kept it from ending.

``short_fit.py KIND [--steps N] [--slow-ms MS] [--grow-mib MIB] [--no-collections]``; KIND is numpy, py or generator. The
last line says "end" and the process: its work is done.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

ROWS, COLUMNS = 8, 16


def dataset(kind: str, slow_s: float) -> Any:
    """Batches that a Python function makes, each in ``slow_s``; some are under way whenever the fit ends."""

    def make(number: Any) -> Any:
        time.sleep(slow_s)
        return np.full((ROWS, COLUMNS), float(number % 7), np.float32)

    def items() -> Any:
        number = 0
        while True:
            number += 1
            yield make(number)

    if kind == "generator":
        made = tf.data.Dataset.from_generator(items, output_signature=tf.TensorSpec((ROWS, COLUMNS), tf.float32))
    else:
        call = tf.numpy_function if kind == "numpy" else tf.py_function

        def batch(number: Any) -> Any:
            return tf.ensure_shape(call(make, [number], tf.float32), (ROWS, COLUMNS))

        made = tf.data.Dataset.range(10**9).map(batch, num_parallel_calls=4)
    return made.map(lambda x: (x, x[:, :1])).prefetch(8)


class Grows(keras.callbacks.Callback):  # type: ignore[misc]
    """Takes memory in the middle of the fit, and leaves time to look at it."""

    def __init__(self, step: int, size: int) -> None:
        super().__init__()
        self._step, self._size = step, size
        self.kept: Any = None

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Grow at the step."""
        del logs
        if batch == self._step:
            self.kept = np.ones(self._size, np.uint8)
            time.sleep(0.3)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("numpy", "py", "generator"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--slow-ms", type=float, default=50)
    parser.add_argument("--grow-mib", type=int, default=300)
    parser.add_argument("--no-collections", action="store_true")
    given = parser.parse_args()
    if given.no_collections:
        gc.disable()
    model = keras.Sequential([keras.layers.Input((COLUMNS,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    grows = Grows(given.steps // 2, given.grow_mib << 20)
    batches = dataset(given.kind, given.slow_ms / 1e3)
    model.fit(batches, epochs=1, steps_per_epoch=given.steps, callbacks=[grows], verbose=0)


main()
print("end", os.getpid(), flush=True)
