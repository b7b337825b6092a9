"""Compressed record files are read several at a time."""

import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

FILES, RECORDS = 16, 600
folder = tempfile.mkdtemp()
rng = np.random.default_rng(0)
for index in range(FILES):
    path = os.path.join(folder, f"part-{index}.tfrecord.gz")
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)) as writer:
        for _ in range(RECORDS):
            writer.write(rng.integers(0, 16, 20_000, dtype=np.uint8).tobytes())

files = sorted(tf.io.gfile.glob(os.path.join(folder, "*.gz")))
records = tf.data.TFRecordDataset(files, compression_type="GZIP", num_parallel_reads=8)

begin = time.perf_counter()
size = 0
for batch in records.repeat(4).batch(100):
    size += int(tf.reduce_sum(tf.strings.length(batch)))
print(json.dumps({"seconds": time.perf_counter() - begin, "result": size}))
