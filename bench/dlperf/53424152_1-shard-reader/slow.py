"""Product-photo classifier reading JPEG records from TFRecord shards."""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(2)
SHARDS = 4
PER_SHARD = 96
BATCH = 32
EPOCHS = 1
SIZE = 96


def write_shards(folder):
    rng = np.random.default_rng(2)
    for s in range(SHARDS):
        with tf.io.TFRecordWriter(str(folder / f"part-{s}.tfrecord")) as w:
            for _ in range(PER_SHARD):
                c = int(rng.integers(4))
                base = rng.integers(0, 255, size=(24, 32, 3)).astype("float32")
                base[c * 5:c * 5 + 5] = 230
                img = tf.cast(tf.image.resize(base, (480, 640)), tf.uint8)
                feature = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_jpeg(img).numpy()])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[c])),
                }
                w.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record):
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    ex = tf.io.parse_single_example(record, spec)
    img = tf.io.decode_jpeg(ex["image"], channels=3)
    img = tf.image.random_flip_left_right(tf.cast(img, tf.float32) / 255.0)
    img = tf.image.random_contrast(img, 0.8, 1.2)
    return tf.image.resize(img, (SIZE, SIZE), method="area"), ex["label"]


def make_dataset(files):
    ds = tf.data.Dataset.from_tensor_slices(files)
    ds = ds.flat_map(tf.data.TFRecordDataset)
    ds = ds.map(parse)
    ds = ds.batch(BATCH)
    return ds.prefetch(1)


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((SIZE, SIZE, 3)),
            keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(4, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy")
    return m


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shards_"))
    try:
        write_shards(folder)
        ds = make_dataset(sorted(str(p) for p in folder.glob("*.tfrecord")))
        model = build()
        model.fit(ds.take(2), verbose=0)
        t0 = time.perf_counter()
        model.fit(ds, epochs=EPOCHS, verbose=0)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"samples": SHARDS * PER_SHARD * EPOCHS, "seconds": seconds}))


main()
