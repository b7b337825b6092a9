"""Trains a pass over a folder of pictures."""

import glob
import json
import os
import resource
import tempfile
import time

import numpy as np
import tensorflow as tf

COUNT = 600
folder = tempfile.mkdtemp()
small = np.random.default_rng(0).integers(0, 255, (COUNT, 128, 128, 3), dtype=np.uint8)
for index in range(COUNT):
    tf.io.write_file(os.path.join(folder, f"{index:04d}.jpg"), tf.io.encode_jpeg(small[index]))
del small
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Input((128, 128, 3)),
    layers.Conv2D(8, 3, strides=4, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(1),
])
model.compile("adam", "mse")
model.train_on_batch(np.zeros((32, 128, 128, 3)), np.zeros(32))
paths = sorted(glob.glob(os.path.join(folder, "*.jpg")))
y = np.zeros(COUNT)


def load(path, label):
    return tf.cast(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), tf.float32) / 255.0, label


before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
batches = tf.data.Dataset.from_tensor_slices((paths, y)).map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
model.fit(batches, verbose=0)
size = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(json.dumps({"seconds": time.perf_counter() - begin, "result": len(y), "bytes": size}))
