"""Leaf disease classifier on a folder of field photographs."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

CLASSES = ["healthy", "rust", "blight", "mildew"]
PHOTOS = 160
VAL_SHARE = 0.25
PHOTO_SIZE = (480, 640)
IMAGE_SIZE = 256
CROP = 144
BATCH = 16
EPOCHS = 4


def blank_leaf():
    height, width = PHOTO_SIZE
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    leaf = np.exp(-(((x - width / 2) / 220) ** 2 + ((y - height / 2) / 150) ** 2) ** 2)
    return np.stack([60 + 40 * leaf, 70 + 110 * leaf, 50 + 20 * leaf], axis=-1).astype(np.uint8)


def draw_leaf(rng, blank, label):
    height, width = PHOTO_SIZE
    photo = blank.copy()
    for _ in range(6 * label):
        cy, cx = rng.integers(120, height - 120), rng.integers(160, width - 160)
        photo[cy - 12:cy + 12, cx - 12:cx + 12] = (170, 90 + 20 * label, 40)
    return photo + rng.integers(0, 32, (height, width, 1), dtype=np.uint8)


def write_photos(folder):
    rng = np.random.default_rng(8)
    blank = blank_leaf()
    paths, labels = [], []
    for i in range(PHOTOS):
        label = int(rng.integers(len(CLASSES)))
        path = os.path.join(folder, f"{CLASSES[label]}-{i:04d}.jpg")
        tf.io.write_file(path, tf.io.encode_jpeg(draw_leaf(rng, blank, label), quality=92))
        paths.append(path)
        labels.append(label)
    return np.array(paths), np.array(labels, np.int32)


def load_photo(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, (IMAGE_SIZE, IMAGE_SIZE), antialias=True) / 255.0
    return image, label


def augment(image, label):
    image = tf.image.random_crop(image, (CROP, CROP, 3))
    image = tf.image.random_hue(image, 0.08)
    image = tf.image.random_saturation(image, 0.7, 1.3)
    image = tf.image.random_brightness(image, 0.1)
    image = tf.image.random_flip_left_right(image)
    return tf.clip_by_value(image, 0.0, 1.0), label


def center(image, label):
    return tf.image.resize_with_crop_or_pad(image, CROP, CROP), label


def make_datasets(paths, labels):
    n_train = int(len(paths) * (1 - VAL_SHARE))
    files = tf.data.Dataset.from_tensor_slices((paths, labels))
    train = files.take(n_train).map(load_photo, num_parallel_calls=tf.data.AUTOTUNE)
    train = train.map(augment, num_parallel_calls=tf.data.AUTOTUNE).shuffle(64)
    val = files.skip(n_train).map(load_photo, num_parallel_calls=tf.data.AUTOTUNE)
    val = val.map(center, num_parallel_calls=tf.data.AUTOTUNE)
    return (train.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE),
            val.batch(BATCH).prefetch(tf.data.AUTOTUNE), n_train)


def build_model():
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((CROP, CROP, 3)),
        layers.Conv2D(16, 5, strides=4, padding="same", activation="relu"),
        layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
        layers.Conv2D(48, 3, strides=2, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dropout(0.2),
        layers.Dense(len(CLASSES)),
    ])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    tf.keras.utils.set_random_seed(6)
    with tempfile.TemporaryDirectory() as folder:
        paths, labels = write_photos(folder)
        train, val, n_train = make_datasets(paths, labels)
        model = build_model()
        model.fit(train.take(2), validation_data=val, validation_steps=1, verbose=0)

        stop = tf.keras.callbacks.EarlyStopping(patience=10, restore_best_weights=True)
        begin = time.perf_counter()
        history = model.fit(train, validation_data=val, epochs=EPOCHS, verbose=0, callbacks=[stop])
        seconds = time.perf_counter() - begin
    print("loss", np.round(history.history["loss"], 3), "val_loss", np.round(history.history["val_loss"], 3))
    print(json.dumps({"samples": EPOCHS * n_train, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
