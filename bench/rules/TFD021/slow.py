"""Photographs are loaded in a loop and made small."""

import json
import pathlib
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

COUNT, SIZE = 60, 128
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for index in range(COUNT):
    small = rng.integers(0, 255, (12, 16, 3)).astype("float32")
    photo = tf.cast(tf.image.resize(small, (960, 1280)), tf.uint8)
    (folder / f"{index:03d}.jpg").write_bytes(tf.io.encode_jpeg(photo, quality=90).numpy())
paths = sorted(folder.glob("*.jpg"))


def load(path):
    photo = keras.utils.img_to_array(keras.utils.load_img(path))
    return tf.image.resize(photo, (SIZE, SIZE)).numpy()


load(paths[0])
start = time.perf_counter()
images = np.array([load(path) for path in paths])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": list(images.shape)}))
