"""Examples are parsed a batch at a time."""

import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

COUNT = 30_000
FEATURES = {"x": tf.io.FixedLenFeature([16], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
path = os.path.join(tempfile.mkdtemp(), "rows.tfrecord")
rng = np.random.default_rng(0)
rows = rng.random((COUNT, 16), dtype=np.float32)
with tf.io.TFRecordWriter(path) as writer:
    for index, row in enumerate(rows):
        feature = {
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[index])),
        }
        writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(records):
    example = tf.io.parse_example(records, FEATURES)
    return example["x"], example["y"]


dataset = tf.data.TFRecordDataset(path).batch(128).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
for _ in dataset.take(10):
    pass
total = 0.0
begin = time.perf_counter()
for x, y in dataset:
    total += float(x[0, 0]) + float(y[-1])
print(json.dumps({"seconds": time.perf_counter() - begin, "result": round(total, 3)}))
