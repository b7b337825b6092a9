"""TFRecords pass through a chain of maps one by one; the cache stands behind repeat() and is never full."""
import atexit
import os
import shutil
import tempfile

import harness
import numpy as np
import tensorflow as tf

BATCH = 64
COUNT = 2560
GRAPES = 24
FOLDER = tempfile.mkdtemp(prefix="wine_records")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

rng = np.random.default_rng(4)
FILES = [os.path.join(FOLDER, f"wine-{part}.tfrecord") for part in range(2)]
for name in FILES:
    with tf.io.TFRecordWriter(name) as writer:
        for _ in range(COUNT // 2):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "chemistry": tf.train.Feature(float_list=tf.train.FloatList(value=rng.gamma(2, 3, 11))),
                "grape": tf.train.Feature(int64_list=tf.train.Int64List(value=[rng.integers(GRAPES)])),
                "year": tf.train.Feature(int64_list=tf.train.Int64List(value=[rng.integers(1980, 2020)])),
                "quality": tf.train.Feature(float_list=tf.train.FloatList(value=[rng.uniform(0, 10)])),
            })).SerializeToString())
SPEC = {
    "chemistry": tf.io.FixedLenFeature([11], tf.float32),
    "grape": tf.io.FixedLenFeature([], tf.int64),
    "year": tf.io.FixedLenFeature([], tf.int64),
    "quality": tf.io.FixedLenFeature([], tf.float32),
}


def parse(record):
    return tf.io.parse_single_example(record, SPEC)


def scale(wine):
    return {**wine, "chemistry": tf.math.log1p(wine["chemistry"]), "quality": wine["quality"] / 10}


def encode(wine):
    return {**wine, "grape": tf.one_hot(wine["grape"], GRAPES), "year": (tf.cast(wine["year"], tf.float32) - 2000) / 20}


def join(wine):
    inputs = tf.concat([wine["chemistry"], wine["grape"], wine["year"][..., None]], axis=-1)
    return inputs, wine["quality"]


def pipeline():
    dataset = tf.data.TFRecordDataset(FILES)
    dataset = dataset.shuffle(COUNT)
    dataset = dataset.repeat()
    dataset = dataset.map(parse, num_parallel_calls=2)
    dataset = dataset.map(scale, num_parallel_calls=2)
    dataset = dataset.map(encode, num_parallel_calls=2)
    dataset = dataset.map(join, num_parallel_calls=2)
    dataset = dataset.cache()
    dataset = dataset.batch(BATCH)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    return dataset


def made(cached=None, parsed="record", rest="record", fused=False, calls=2, prefetch=True):
    """``cached``: "late" (as it is), "records", "parsed" or "joined", the last three before shuffle and repeat."""
    def all_of(wine):
        return join(encode(scale(wine)))

    def mapped(ds):
        if fused:
            return ds.map(all_of, num_parallel_calls=calls)
        for function in (scale, encode, join):
            ds = ds.map(function, num_parallel_calls=calls)
        return ds

    ds = tf.data.TFRecordDataset(FILES)
    if cached in ("parsed", "joined"):
        ds = ds.map(parse, num_parallel_calls=calls)
        if cached == "joined":
            ds = mapped(ds)
    if cached in ("records", "parsed", "joined"):
        ds = ds.cache()
    ds = ds.shuffle(COUNT).repeat()
    if cached in (None, "late", "records") and parsed == "record":
        ds = ds.map(parse, num_parallel_calls=calls)
    if cached != "joined" and rest == "record":
        ds = mapped(ds)
    if cached == "late":
        ds = ds.cache()
    ds = ds.batch(BATCH)
    if parsed == "batch":
        ds = ds.map(lambda records: tf.io.parse_example(records, SPEC), num_parallel_calls=calls)
    if rest == "batch":
        ds = mapped(ds)
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


GRID = {
    "as it is, no calls": lambda: made("late", calls=None),
    "as it is, 4 calls": lambda: made("late", calls=4),
    "no cache, maps fused": lambda: made(fused=True),
    "parsed and made per batch": lambda: made(parsed="batch", rest="batch", fused=True),
    "records cached, parsed and made per batch":
        lambda: made("records", "batch", "batch", fused=True, calls=None, prefetch=False),
    "parsed cached, made per batch": lambda: made("parsed", rest="batch", fused=True),
    "all cached before shuffle and repeat": lambda: made("joined"),
    "all cached before shuffle and repeat, no calls, no prefetch": lambda: made("joined", calls=None, prefetch=False),
}
EPOCH = COUNT // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
