"""Handwriting strokes from a binary file, read with tf.data (was a queue pipeline before)."""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(38)
RECORDS, POINTS = 24_000, 32
BATCH = 256
EPOCHS = 2
WIDTH = POINTS * 2 + 1


def write_strokes(path):
    rng = np.random.default_rng(38)
    data = rng.integers(-60, 60, size=(RECORDS, WIDTH)).astype("int16")
    data[:, 0] = rng.integers(0, 10, size=RECORDS)
    data[:, 1::2] += 3 * data[:, :1]
    data.tofile(path)


def decode(raw):
    values = tf.cast(tf.io.decode_raw(raw, tf.int16), tf.float32)
    label = tf.cast(values[..., 0], tf.int32)
    xy = tf.reshape(values[..., 1:], tf.concat([tf.shape(values)[:-1], [POINTS, 2]], axis=0))
    xy = (xy - tf.reduce_mean(xy, axis=-2, keepdims=True)) / 60.0
    speed = xy[..., 1:, :] - xy[..., :-1, :]
    return tf.concat([xy[..., 1:, :], speed], axis=-1), label


def dataset(path):
    ds = tf.data.FixedLengthRecordDataset(str(path), WIDTH * 2)
    ds = ds.map(decode)
    ds = ds.repeat(EPOCHS)
    ds = ds.shuffle(5000)
    return ds.batch(BATCH, drop_remainder=True)


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((POINTS - 1, 4)),
            keras.layers.Conv1D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy")
    return m


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="strokes_"))
    try:
        path = folder / "strokes.bin"
        write_strokes(path)
        model = build()
        model.fit(dataset(path).take(3), verbose=0)
        t0 = time.perf_counter()
        hist = model.fit(dataset(path), epochs=1, verbose=0)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("loss", hist.history["loss"][-1])
    print(json.dumps({"samples": RECORDS * EPOCHS // BATCH * BATCH, "seconds": seconds}))


main()
