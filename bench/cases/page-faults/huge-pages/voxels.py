"""Sorts the points of laser scans into a voxel grid and scores each scan by its occupied columns."""
import json
import time

import numpy as np
import tensorflow as tf

SIDE, POINTS, SCANS = 320, 20_000, 4


@tf.function
def occupied(cells):
    grid = tf.scatter_nd(cells, tf.ones(POINTS), (SIDE, SIDE, SIDE))
    return tf.reduce_sum(tf.gather(grid, tf.range(0, SIDE, 16)))


def main(seconds=14):
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    rng = np.random.default_rng(78)
    scans = [tf.constant(rng.integers(0, SIDE, (POINTS, 3)), tf.int32) for _ in range(SCANS)]
    for scan in scans:
        occupied(scan)
    score, done = 0.0, 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        score += float(occupied(scans[done % SCANS]))
        done += 1
    spent = time.perf_counter() - start
    print(f"mean score {score / max(1, done):.1f}")
    print(json.dumps({"samples": done, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
