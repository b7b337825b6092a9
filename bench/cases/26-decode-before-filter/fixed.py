"""Small image classifier: the files hold 24 kinds of pictures, the experiment wants three of them."""
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

KINDS, WANTED, BATCH = 24, (3, 17, 21), 16
SPEC = {"image": tf.io.FixedLenFeature([], tf.string), "kind": tf.io.FixedLenFeature([], tf.int64)}


def write_files(folder, files=4, each=150):
    rng = np.random.default_rng(26)
    for number in range(files):
        with tf.io.TFRecordWriter(os.path.join(folder, f"{number}.tfrecord")) as out:
            for _ in range(each):
                image = tf.io.encode_jpeg(rng.integers(0, 255, (160, 160, 3)).astype("uint8")).numpy()
                feature = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                    "kind": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(0, KINDS))])),
                }
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record):
    example = tf.io.parse_single_example(record, SPEC)
    return example["image"], example["kind"]


def decode(data, kind):
    image = tf.image.resize(tf.io.decode_jpeg(data, channels=3), [64, 64]) / 255.0
    return tf.reshape(image, [64, 64, 3]), kind


def wanted(_, kind):
    return tf.reduce_any(kind == tf.constant(WANTED, tf.int64))


def pictures(folder):
    data = tf.data.Dataset.list_files(os.path.join(folder, "*.tfrecord"), seed=1)
    data = data.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE).repeat()
    data = data.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.filter(wanted)
    data = data.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return data.shuffle(128).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def main(steps=700):
    folder = tempfile.mkdtemp()
    write_files(folder)
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(KINDS),
    ])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = pictures(folder)
    model.fit(data, steps_per_epoch=5, verbose=0)
    start = time.perf_counter()
    model.fit(data, steps_per_epoch=steps, epochs=1, verbose=2)
    spent = time.perf_counter() - start
    print(json.dumps({"samples": steps * BATCH, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
