"""A shuffle buffer of decoded images."""

import json
import os
import resource
import tempfile
import time

import numpy as np
import tensorflow as tf

COUNT = 600
folder = tempfile.mkdtemp()
small = np.random.default_rng(0).integers(0, 255, (COUNT, 32, 32, 3), dtype=np.uint8)
for index in range(COUNT):
    tf.io.write_file(os.path.join(folder, f"{index:03d}.jpg"), tf.io.encode_jpeg(small[index]))


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [224, 224])


paths = tf.data.Dataset.list_files(os.path.join(folder, "*.jpg"), shuffle=False)
images = paths.map(load, num_parallel_calls=tf.data.AUTOTUNE).shuffle(600, seed=1)

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
rows = 0
for batch in images.batch(20):
    rows += int(batch.shape[0])
size = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(json.dumps({"seconds": time.perf_counter() - begin, "result": rows, "bytes": size}))
