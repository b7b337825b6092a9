"""Leaf disease classifier: photos from the greenhouse, four classes, a small CNN trained on the tablet crops."""
import json
import os
import pathlib
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

CLASSES = ["healthy", "rust", "mildew", "blight"]
PHOTOS_PER_CLASS = 60
PHOTO = 320
CROP = 48
BATCH = 16
EPOCHS = 10
DEBUG = False


def synth_leaf(rng, label):
    yy, xx = np.mgrid[0:PHOTO, 0:PHOTO].astype("float32") / PHOTO
    base = 90 + 60 * np.sin(6 * xx + rng.uniform(0, 6)) * np.cos(5 * yy + rng.uniform(0, 6))
    img = np.stack([base * 0.5, base, base * 0.4], -1)
    for _ in range(12 * label):
        cy, cx, r = rng.uniform(0, 1), rng.uniform(0, 1), rng.uniform(0.01, 0.04)
        spot = ((yy - cy) ** 2 + (xx - cx) ** 2) < r * r
        img[spot] = (180, 90 + 30 * label, 40)
    img += rng.normal(0, 8, img.shape)
    return np.clip(img, 0, 255).astype("uint8")


def write_photos(root, seed=11):
    rng = np.random.default_rng(seed)
    for label, name in enumerate(CLASSES):
        folder = root / name
        folder.mkdir(parents=True)
        for i in range(PHOTOS_PER_CLASS):
            png = tf.io.encode_png(synth_leaf(rng, label))
            tf.io.write_file(str(folder / f"{i:04d}.png"), png)


def list_photos(root):
    files, labels = [], []
    for label, name in enumerate(CLASSES):
        for f in sorted((root / name).glob("*.png")):
            files.append(str(f))
            labels.append(label)
    return np.array(files), np.array(labels, dtype="int32")


def read_photo(path, label):
    img = tf.io.decode_png(tf.io.read_file(path), channels=3)
    img = tf.image.resize(img, (CROP, CROP), method="area")
    img = img / 255.0
    return img, label


def flip(img, label):
    return tf.image.random_flip_left_right(img), label


def make_dataset(files, labels, training=True):
    ds = tf.data.Dataset.from_tensor_slices((files, labels))
    ds = ds.map(read_photo, num_parallel_calls=tf.data.AUTOTUNE).cache()
    ds = ds.shuffle(len(files), seed=1)
    if training:
        ds = ds.map(flip, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def conv_block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    return layers.MaxPooling2D()(x)


def build_model():
    inp = keras.Input((CROP, CROP, 3))
    x = inp
    for filters in (8, 16, 24, 32):
        x = conv_block(x, filters)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(32, activation="relu")(x)
    return keras.Model(inp, layers.Dense(len(CLASSES), activation="softmax")(x))


class Stopwatch(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.start = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.start


def main():
    keras.utils.set_random_seed(5)
    root = pathlib.Path(tempfile.mkdtemp(prefix="leaves-"))
    write_photos(root)
    files, labels = list_photos(root)
    train = make_dataset(files, labels)

    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        run_eagerly=DEBUG,
    )
    watch = Stopwatch()
    hist = model.fit(train, epochs=EPOCHS, callbacks=[watch], verbose=0)
    print("final accuracy %.3f, photos %d, in %s" % (hist.history["accuracy"][-1], len(files), os.path.basename(root)))
    steps = len(files) // BATCH
    print(json.dumps({"samples": (EPOCHS - 1) * steps * BATCH, "seconds": round(watch.seconds, 3)}))


if __name__ == "__main__":
    main()
