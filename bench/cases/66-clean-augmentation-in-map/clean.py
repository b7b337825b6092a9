"""Leaf diseases: random crops and colours by tf.image in a parallel map, a network that needs the time."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf

SIDE, CROP, DISEASES = 72, 64, 5


def leaves(count, seed):
    """uint8 images: a green ellipse with spots whose colour tells the disease."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
    images = np.zeros((count, SIDE, SIDE, 3), "float32")
    labels = rng.integers(0, DISEASES, count)
    colours = rng.uniform(0, 255, (DISEASES, 3))
    for image, label in zip(images, labels):
        leaf = (xx / rng.uniform(0.5, 0.9)) ** 2 + (yy / rng.uniform(0.6, 0.95)) ** 2 < 1
        image[leaf] = (40, 130, 30)
        for _ in range(6):
            cx, cy = rng.uniform(-0.5, 0.5, 2)
            image[leaf & (np.hypot(xx - cx, yy - cy) < 0.12)] = colours[label]
    return (images + rng.normal(0, 10, images.shape)).clip(0, 255).astype("uint8"), labels.astype("int32")


def augment(image, label, seed):
    image = tf.image.stateless_random_crop(image, (CROP, CROP, 3), seed)
    image = tf.image.stateless_random_flip_left_right(image, seed)
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.stateless_random_brightness(image, 0.2, seed)
    return tf.image.stateless_random_contrast(image, 0.8, 1.2, seed), label


def pipeline(images, labels, batch):
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images), seed=3)
    seeds = tf.data.Dataset.random(seed=4).batch(2, drop_remainder=True)
    dataset = tf.data.Dataset.zip((dataset, seeds))
    dataset = dataset.map(lambda pair, seed: augment(*pair, seed), num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def residual(x, filters):
    h = tf.keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    h = tf.keras.layers.Conv2D(filters, 3, padding="same")(h)
    return tf.keras.layers.ReLU()(tf.keras.layers.Add()([x, h]))


def network():
    inputs = tf.keras.Input((CROP, CROP, 3))
    x = tf.keras.layers.Conv2D(24, 5, strides=2, padding="same", activation="relu")(inputs)
    x = residual(x, 24)
    x = tf.keras.layers.Conv2D(48, 3, strides=2, padding="same", activation="relu")(x)
    x = residual(residual(x, 48), 48)
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(DISEASES)(x))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(66)
    dataset = pipeline(*leaves(args.images, 66), 32)
    model = network()
    model.fit(dataset.take(2), verbose=0)
    start = time.perf_counter()
    model.fit(dataset, epochs=args.epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.images // 32 * 32 * args.epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
