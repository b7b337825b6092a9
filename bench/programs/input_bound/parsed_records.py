"""Cache, shards: four files are parsed record by record, one file after the other, in each pass."""

import os
import tempfile

import harness
import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp(prefix="input-bound-")
generator = np.random.default_rng(1)
names = [os.path.join(folder, f"part-{part}.tfrecord") for part in range(4)]
for name in names:
    with tf.io.TFRecordWriter(name) as writer:
        for _ in range(250):
            values = tf.train.Feature(float_list=tf.train.FloatList(value=generator.standard_normal(512)))
            label = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
            features = tf.train.Features(feature={"values": values, "label": label})
            writer.write(tf.train.Example(features=features).SerializeToString())

FORM = {"values": tf.io.FixedLenFeature([512], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}


def parse(record):
    example = tf.io.parse_single_example(record, FORM)
    return tf.sort(example["values"]), example["label"]


def pipeline():
    files = tf.data.Dataset.from_tensor_slices(names)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=1)
    return records.map(parse).batch(50).repeat().prefetch(tf.data.AUTOTUNE)


def made(cycle, cache, calls):
    records = tf.data.Dataset.from_tensor_slices(names)
    records = records.interleave(tf.data.TFRecordDataset, cycle_length=cycle, num_parallel_calls=calls)
    if cache == "before":
        records = records.cache()
    records = records.map(parse, num_parallel_calls=calls)
    if cache == "after":
        records = records.cache()
    return records.batch(50).repeat().prefetch(tf.data.AUTOTUNE)


GRID = {
    f"cycle={cycle} cache={cache} calls={calls}": lambda cycle=cycle, cache=cache, calls=calls: made(cycle, cache, calls)
    for cycle in (1, 4)
    for cache in ("no", "before", "after")
    for calls in (None, tf.data.AUTOTUNE)
}

if __name__ == "__main__":
    harness.main(pipeline, GRID, 20)
