"""Click-through model over tf.train.Example records with many small features."""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(3)
ROWS = 24_000
BATCH = 512
EPOCHS = 2
NUMERIC = [f"n{i}" for i in range(13)]
SPEC = {k: tf.io.FixedLenFeature([], tf.float32) for k in NUMERIC}
SPEC["slots"] = tf.io.FixedLenFeature([26], tf.int64)
SPEC["click"] = tf.io.FixedLenFeature([], tf.int64)


def write_file(path):
    rng = np.random.default_rng(3)
    with tf.io.TFRecordWriter(path) as w:
        for _ in range(ROWS):
            num = rng.normal(size=13)
            feature = {k: tf.train.Feature(float_list=tf.train.FloatList(value=[v])) for k, v in zip(NUMERIC, num)}
            slots = rng.integers(0, 1000, size=26)
            feature["slots"] = tf.train.Feature(int64_list=tf.train.Int64List(value=slots))
            click = int(num[0] + 0.001 * slots[0] > 0.5)
            feature["click"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[click]))
            w.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def to_features(record):
    ex = tf.io.parse_single_example(record, SPEC)
    dense = tf.stack([tf.math.log1p(tf.abs(ex[k])) for k in NUMERIC], axis=-1)
    return (dense, ex["slots"]), ex["click"]


def make_dataset(path):
    ds = tf.data.TFRecordDataset(path)
    ds = ds.map(to_features)
    ds = ds.prefetch(2)
    ds = ds.batch(BATCH)
    return ds


def build():
    dense = keras.Input((13,))
    slots = keras.Input((26,), dtype="int64")
    e = keras.layers.Embedding(1000, 8)(slots)
    h = keras.layers.Concatenate()([dense, keras.layers.Flatten()(e)])
    h = keras.layers.Dense(64, activation="relu")(h)
    out = keras.layers.Dense(1, activation="sigmoid")(h)
    m = keras.Model([dense, slots], out)
    m.compile("adam", "binary_crossentropy")
    return m


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="clicks_"))
    try:
        path = str(folder / "clicks.tfrecord")
        write_file(path)
        ds = make_dataset(path)
        model = build()
        model.fit(ds.take(2), verbose=0)
        t0 = time.perf_counter()
        model.fit(ds, epochs=EPOCHS, verbose=0)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"samples": ROWS * EPOCHS, "seconds": seconds}))


main()
