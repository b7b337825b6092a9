"""Fine-grained classifier on a folder of phone photographs (JPEG, 1600x1200)."""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras

SIZE = 128
N_FILES = 120
EPOCHS = 1


def shoot_photos(folder):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, size=N_FILES)
    for i, c in enumerate(labels):
        small = rng.integers(0, 255, size=(30, 40, 3)).astype("float32")
        small[..., c] = 200
        img = tf.image.resize(small, (1200, 1600))
        data = tf.io.encode_jpeg(tf.cast(img, tf.uint8), quality=90)
        (folder / f"{c}_{i:04d}.jpg").write_bytes(data.numpy())


def read_folder(paths):
    def load(path):
        img = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=8)
        return tf.image.resize(img, (SIZE, SIZE)) / 255.0

    ds = tf.data.Dataset.from_tensor_slices([str(p) for p in paths])
    ds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(len(paths))
    labels = [int(p.name.split("_")[0]) for p in paths]
    return next(iter(ds)).numpy(), np.array(labels)


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((SIZE, SIZE, 3)),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy")
    return m


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="photos_"))
    try:
        shoot_photos(folder)
        paths = sorted(folder.glob("*.jpg"))
        model = build()
        xw, yw = read_folder(paths[:8])
        model.fit(xw, yw, batch_size=8, verbose=0)

        t0 = time.perf_counter()
        x, y = read_folder(paths)
        model.fit(x, y, batch_size=8, epochs=EPOCHS, verbose=0)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("images", x.shape)
    print(json.dumps({"samples": len(x), "seconds": seconds}))


main()
