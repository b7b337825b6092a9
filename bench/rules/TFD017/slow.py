"""One of four workers decodes every image and keeps a fourth."""

import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

COUNT, WORKERS = 800, 4
folder = tempfile.mkdtemp()
image = tf.image.resize(np.random.default_rng(0).integers(0, 255, (16, 16, 3)), [512, 512])
data = tf.io.encode_jpeg(tf.cast(image, tf.uint8))
for index in range(COUNT):
    tf.io.write_file(os.path.join(folder, f"{index:03d}.jpg"), data)


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [224, 224])


paths = tf.data.Dataset.list_files(os.path.join(folder, "*.jpg"), shuffle=False)
images = paths.map(load, num_parallel_calls=tf.data.AUTOTUNE).shard(WORKERS, 1)

rows = 0
begin = time.perf_counter()
for batch in images.batch(20):
    rows += int(batch.shape[0])
print(json.dumps({"seconds": time.perf_counter() - begin, "result": rows}))
