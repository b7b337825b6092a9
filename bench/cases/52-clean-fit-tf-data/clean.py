"""Digits with light augmentation in tf.data, prefetched, trained by fit."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf


def glyphs(count, seed):
    rng = np.random.default_rng(seed)
    prototypes = (rng.random((10, 28, 28)) < 0.2).astype("float32")
    kind = rng.integers(0, 10, count)
    return prototypes[kind] + rng.normal(0, 0.2, (count, 28, 28)).astype("float32"), kind.astype("int32")


def augment(images, kind):
    images = tf.pad(images, ((0, 0), (2, 2), (2, 2)))
    images = tf.image.random_crop(images, (tf.shape(images)[0], 28, 28))
    return images[..., None] * tf.random.uniform((), 0.8, 1.2), kind


def make_dataset(images, kind, batch):
    ds = tf.data.Dataset.from_tensor_slices((images, kind)).shuffle(len(images), seed=4).batch(batch)
    return ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def convnet():
    model = tf.keras.Sequential([tf.keras.layers.Input((28, 28, 1))])
    for width in (16, 32):
        model.add(tf.keras.layers.Conv2D(width, 3, padding="same", activation="relu"))
        model.add(tf.keras.layers.MaxPooling2D())
    model.add(tf.keras.layers.Flatten())
    model.add(tf.keras.layers.Dense(10))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=9600)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(4)
    ds = make_dataset(*glyphs(args.count, 4), 48)
    model = convnet()
    model.fit(ds.take(3), verbose=0)
    start = time.perf_counter()
    model.fit(ds, epochs=args.epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.count * args.epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
