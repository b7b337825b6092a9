"""Leaf photo classifier: JPEG files on disk, tf.data, custom loop with fixed-length epochs."""
import argparse
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import cv2
import numpy as np
import tensorflow as tf
import keras
from keras import layers

CLASSES = 12
SIDE = 80
BATCH = 32
STEPS_PER_EPOCH = 24
PHOTOS = 1280
VAL_PHOTOS = 128
AUTOTUNE = tf.data.AUTOTUNE


def write_photos(root, count, seed):
    rng = np.random.default_rng(seed)
    paths, labels = [], []
    textures = [cv2.resize(rng.integers(0, 255, (15, 20, 3), dtype=np.uint8), (960, 720),
                           interpolation=cv2.INTER_CUBIC) for _ in range(24)]
    for i in range(count):
        label = int(rng.integers(0, CLASSES))
        img = textures[int(rng.integers(0, len(textures)))].copy()
        center = (int(rng.integers(200, 760)), int(rng.integers(200, 520)))
        color = tuple(int(v) for v in ((label * 37) % 255, (label * 91) % 255, (label * 17) % 255))
        cv2.ellipse(img, center, (60 + 14 * label, 50), 15 * label, 0, 360, color, -1)
        path = root / f"{i:05d}.jpg"
        cv2.imwrite(str(path), img, [cv2.IMWRITE_JPEG_QUALITY, 92])
        paths.append(str(path))
        labels.append(label)
    return paths, np.array(labels, np.int32)


def load(path, label):
    raw = tf.io.read_file(path)
    img = tf.io.decode_jpeg(raw, channels=3)
    img = tf.image.resize(img, (SIDE + 16, SIDE + 16), antialias=True)
    return tf.cast(img, tf.uint8), label


def augment(img, label):
    img = tf.image.random_crop(img, (SIDE, SIDE, 3))
    img = tf.image.random_flip_left_right(img)
    return tf.cast(img, tf.float32) / 127.5 - 1.0, label


def center(img, label):
    img = tf.image.resize_with_crop_or_pad(img, SIDE, SIDE)
    return tf.cast(img, tf.float32) / 127.5 - 1.0, label


def train_data(paths, labels):
    ds = tf.data.Dataset.from_tensor_slices((paths, labels))
    ds = ds.map(load, num_parallel_calls=AUTOTUNE)
    ds = ds.cache()
    ds = ds.shuffle(256)
    ds = ds.map(augment, num_parallel_calls=AUTOTUNE)
    ds = ds.batch(BATCH, drop_remainder=True)
    opts = tf.data.Options()
    opts.deterministic = False
    return ds.prefetch(AUTOTUNE).with_options(opts)


def val_data(paths, labels):
    ds = tf.data.Dataset.from_tensor_slices((paths, labels))
    ds = ds.map(load, num_parallel_calls=AUTOTUNE).cache()
    return ds.map(center, num_parallel_calls=AUTOTUNE).batch(BATCH)


def build_model():
    inp = keras.Input((SIDE, SIDE, 3))
    x = inp
    for width in (16, 32, 48, 64):
        x = layers.Conv2D(width, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inp, layers.Dense(CLASSES)(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    args = ap.parse_args()
    t0 = time.perf_counter()
    keras.utils.set_random_seed(1)

    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        paths, labels = write_photos(root, PHOTOS + VAL_PHOTOS, seed=2)
        train_ds = train_data(paths[:PHOTOS], labels[:PHOTOS])
        val_ds = val_data(paths[PHOTOS:], labels[PHOTOS:])
        model = build_model()
        opt = keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)
        opt.build(model.trainable_variables)
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        train_loss = keras.metrics.Mean()
        val_acc = keras.metrics.SparseCategoricalAccuracy()

        @tf.function
        def train_step(x, y):
            with tf.GradientTape() as tape:
                loss = loss_fn(y, model(x, training=True))
            grads = tape.gradient(loss, model.trainable_variables)
            opt.apply_gradients(zip(grads, model.trainable_variables))
            train_loss.update_state(loss)

        @tf.function
        def eval_step(x, y):
            val_acc.update_state(y, model(x, training=False))

        setup = time.perf_counter() - t0
        times = []
        for epoch in range(args.epochs):
            train_loss.reset_state()
            s = time.perf_counter()
            for x, y in train_ds.take(STEPS_PER_EPOCH):
                train_step(x, y)
                now = time.perf_counter()
                times.append(now - s)
                s = now
            val_acc.reset_state()
            for x, y in val_ds:
                eval_step(x, y)
            print(f"epoch {epoch + 1} loss {float(train_loss.result()):.3f} "
                  f"val_acc {float(val_acc.result()):.3f}", flush=True)
    print(f"steps={len(times)} mean_step={np.mean(times):.4f} median_step={np.median(times):.4f} setup={setup:.1f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
