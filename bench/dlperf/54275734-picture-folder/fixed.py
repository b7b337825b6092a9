"""Train a small CNN on a large folder of pictures."""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(35)
FILES, SIDE = 2000, 160
BATCH = 32


def write_pictures(folder):
    rng = np.random.default_rng(35)
    for i in range(FILES):
        c = i % 5
        img = rng.integers(0, 100, size=(10, 10, 3)).astype("uint8").repeat(16, 0).repeat(16, 1)
        img[c * 30:c * 30 + 30] += 120
        (folder / f"{c}-{i:05d}.jpg").write_bytes(tf.io.encode_jpeg(img, quality=80).numpy())


def read(path):
    img = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.cast(img, tf.float32) / 255.0


def training_data(folder):
    paths = [str(p) for p in sorted(folder.glob("*.jpg"))]
    labels = np.array([int(pathlib.Path(p).name[0]) for p in paths])
    ds = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(FILES, seed=0)
    ds = ds.map(lambda p, y: (read(p), y), num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(BATCH).prefetch(1)


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((SIDE, SIDE, 3)),
            keras.layers.Conv2D(8, 5, strides=4, activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy")
    return m


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pictures_"))
    try:
        write_pictures(folder)
        model = build()
        model.train_on_batch(np.zeros((BATCH, SIDE, SIDE, 3), "float32"), np.zeros(BATCH, "int64"))
        t0 = time.perf_counter()
        hist = model.fit(training_data(folder), epochs=1, verbose=0)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("loss", hist.history["loss"][-1])
    print(json.dumps({"samples": FILES, "seconds": seconds}))


main()
