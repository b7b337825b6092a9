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
    images, labels = [], []
    for p in paths:
        img = keras.utils.load_img(p)
        arr = keras.utils.img_to_array(img)
        arr = tf.image.resize(arr, (SIZE, SIZE)).numpy()
        images.append(arr / 255.0)
        labels.append(int(p.name.split("_")[0]))
    return np.array(images, dtype="float32"), np.array(labels)


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
