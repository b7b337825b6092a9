"""JPEGs are cached as bytes, decoded in every pass, and the held-out ones are skipped after that; no prefetch."""
import atexit
import os
import shutil
import tempfile

import harness
import numpy as np
import tensorflow as tf

BATCH = 32
HELD_OUT = 160
COUNT = 320
FOLDER = tempfile.mkdtemp(prefix="shop_photos")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

rng = np.random.default_rng(5)
PATHS, LABELS = [], rng.integers(0, 7, HELD_OUT + COUNT).astype(np.int32)
for number in range(HELD_OUT + COUNT):
    coarse = rng.integers(0, 256, (8, 10, 3)).astype(np.float32)
    photo = tf.cast(tf.clip_by_value(tf.image.resize(coarse, (112, 140), "bilinear"), 0, 255), tf.uint8)
    PATHS.append(os.path.join(FOLDER, f"{number}.jpg"))
    tf.io.write_file(PATHS[-1], tf.io.encode_jpeg(photo, quality=90))


def read(path, label):
    return tf.io.read_file(path), label


def decode(data, label):
    image = tf.io.decode_jpeg(data, channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    return tf.image.resize(image, (64, 64)), label


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.2)
    return tf.clip_by_value(image, 0.0, 1.0), label


def pipeline():
    ds = tf.data.Dataset.from_tensor_slices((PATHS, LABELS))
    ds = ds.map(read).cache()
    ds = ds.map(decode)
    ds = ds.skip(HELD_OUT)
    ds = ds.shuffle(64)
    ds = ds.map(augment)
    ds = ds.batch(BATCH)
    return ds.repeat()


def augment_batch(images, labels):
    images = tf.image.random_flip_left_right(images)
    images += tf.random.uniform([tf.shape(images)[0], 1, 1, 1], -0.2, 0.2)
    return tf.clip_by_value(images, 0.0, 1.0), labels


def made(skipped="late", cached="bytes", augmented="image", calls=None, prefetch=False):
    ds = tf.data.Dataset.from_tensor_slices((PATHS, LABELS))
    if skipped == "first":
        ds = ds.skip(HELD_OUT)
    ds = ds.map(read, num_parallel_calls=calls)
    if cached == "bytes":
        ds = ds.cache()
    ds = ds.map(decode, num_parallel_calls=calls)
    if skipped == "late":
        ds = ds.skip(HELD_OUT)
    if cached == "images":
        ds = ds.cache()
    ds = ds.shuffle(64)
    if augmented == "image":
        ds = ds.map(augment, num_parallel_calls=calls)
    ds = ds.batch(BATCH)
    if augmented == "batch":
        ds = ds.map(augment_batch, num_parallel_calls=calls)
    ds = ds.repeat()
    return ds.prefetch(tf.data.AUTOTUNE) if prefetch else ds


GRID = {
    "as it is, 4 calls": lambda: made(calls=4),
    "as it is, autotuned calls, prefetch": lambda: made(calls=tf.data.AUTOTUNE, prefetch=True),
    "skipped first": lambda: made("first"),
    "skipped first, autotuned calls, prefetch": lambda: made("first", calls=tf.data.AUTOTUNE, prefetch=True),
    "images cached": lambda: made("first", "images"),
    "images cached, prefetch": lambda: made("first", "images", prefetch=True),
    "images cached, augmented per batch": lambda: made("first", "images", "batch"),
    "images cached, augmented per batch, prefetch": lambda: made("first", "images", "batch", prefetch=True),
}
EPOCH = COUNT // BATCH

if __name__ == "__main__":
    harness.main(pipeline, GRID, EPOCH)
