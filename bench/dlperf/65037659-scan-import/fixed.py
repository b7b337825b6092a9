"""Import a folder of scanned slides (PNG) class by class and train a small net."""
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(7)
CLASSES = ["benign", "malignant"]
PER_CLASS = 300
SIDE = 96


def write_scans(root):
    rng = np.random.default_rng(7)
    for c, name in enumerate(CLASSES):
        (root / name).mkdir()
        for i in range(PER_CLASS):
            img = rng.integers(0, 120 + 80 * c, size=(16, 16, 3)).astype("uint8").repeat(8, 0).repeat(8, 1)
            (root / name / f"{i:04d}.png").write_bytes(tf.io.encode_png(img).numpy())


def import_folder(root):
    def load(path):
        img = tf.io.decode_png(tf.io.read_file(path), channels=3)
        img = tf.image.resize(tf.cast(img, tf.float32) / 255.0, (SIDE, SIDE))
        name = tf.strings.split(path, "/")[-2]
        return img, tf.argmax(tf.cast(tf.constant(CLASSES) == name, tf.int32))

    files = tf.data.Dataset.list_files(str(root / "*" / "*.png"), shuffle=True, seed=0)
    return files.map(load, num_parallel_calls=tf.data.AUTOTUNE)


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((SIDE, SIDE, 3)),
            keras.layers.Conv2D(8, 5, strides=3, activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return m


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="scans_"))
    try:
        write_scans(root)
        model = build()
        model.train_on_batch(np.zeros((32, SIDE, SIDE, 3), "float32"), np.zeros((32,), "int32"))
        t0 = time.perf_counter()
        ds = import_folder(root).batch(32).prefetch(tf.data.AUTOTUNE)
        hist = model.fit(ds, epochs=1, verbose=0)
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print("accuracy", hist.history["accuracy"][-1])
    print(json.dumps({"samples": len(CLASSES) * PER_CLASS, "seconds": seconds}))


main()
