"""Photographs are loaded in a map and made small while they are decoded."""

import json
import pathlib
import tempfile
import time

import numpy as np
import tensorflow as tf

COUNT, SIZE = 60, 128
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for index in range(COUNT):
    small = rng.integers(0, 255, (12, 16, 3)).astype("float32")
    photo = tf.cast(tf.image.resize(small, (960, 1280)), tf.uint8)
    (folder / f"{index:03d}.jpg").write_bytes(tf.io.encode_jpeg(photo, quality=90).numpy())
paths = sorted(str(path) for path in folder.glob("*.jpg"))


def load(path):
    photo = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=4)
    return tf.image.resize(photo, (SIZE, SIZE))


load(paths[0])
start = time.perf_counter()
photos = tf.data.Dataset.from_tensor_slices(paths).map(load, num_parallel_calls=tf.data.AUTOTUNE)
images = np.array(list(photos.as_numpy_iterator()))
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": list(images.shape)}))
