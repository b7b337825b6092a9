"""A field of cells: each step reads 64 of them, changes them, and writes them back."""
import json
import time

import numpy as np
import tensorflow as tf

ROWS, COLUMNS, CELLS, STEPS = 1500, 2000, 64, 1500


def changed(cells):
    new = tf.sin(cells) + 0.1 * tf.random.normal([CELLS])
    for _ in range(6):
        new = tf.tanh(new) + 0.01 * cells
    return new


def main():
    rng = np.random.default_rng(0)
    field = tf.zeros([ROWS, COLUMNS])
    start, total = None, 0.0
    for step in range(STEPS + 5):
        if step == 5:
            start = time.perf_counter()
        at = tf.constant(rng.integers(0, ROWS, (CELLS, 2)).astype("int32"))
        new = changed(tf.gather_nd(field, at))
        field = tf.tensor_scatter_nd_update(field, at, new)
        total += float(tf.reduce_sum(new))
    print(f"total {total:.2f}")
    print(json.dumps({"samples": STEPS, "seconds": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()
