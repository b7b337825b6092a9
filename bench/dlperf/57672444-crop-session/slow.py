"""Prepare patches for a detector with a graph-mode session: crop, resize, whiten."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
PATCHES = 150
SIDE = 48

rng = np.random.default_rng(2)
photos = rng.random((20, 120, 160, 3), dtype="float32")


def boxes(n):
    for _ in range(n):
        y, x = rng.integers(0, 60), rng.integers(0, 80)
        yield int(rng.integers(20)), int(y), int(x), int(rng.integers(30, 60))


def prepare(sess, photo, y, x, size):
    patch = tf.image.crop_to_bounding_box(photo, y, x, size, size)
    patch = tf.image.resize(patch, (SIDE, SIDE))
    patch = tf.image.per_image_standardization(patch)
    return sess.run(patch)


def main():
    out = np.zeros((PATCHES, SIDE, SIDE, 3), "float32")
    marks = []
    with tf.Session() as sess:
        prepare(sess, photos[0], 0, 0, 40)
        t0 = time.perf_counter()
        for i, (k, y, x, size) in enumerate(boxes(PATCHES)):
            t = time.perf_counter()
            out[i] = prepare(sess, photos[k], y, x, size)
            marks.append(time.perf_counter() - t)
        seconds = time.perf_counter() - t0
    print("first 20 ms", 1e3 * np.mean(marks[:20]), "last 20 ms", 1e3 * np.mean(marks[-20:]))
    print("std", float(out.std()))
    print(json.dumps({"samples": PATCHES, "seconds": seconds}))


main()
