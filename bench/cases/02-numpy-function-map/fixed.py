"""Texture classifier whose images are augmented on the way in; the loop is written by hand."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf

SIDE = 48


def textures(count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, count)
    u, v = np.meshgrid(np.linspace(0, 1, SIDE), np.linspace(0, 1, SIDE))
    waves = np.stack([np.sin(20 * u), np.sin(20 * v), np.sin(14 * (u + v)), np.sin(60 * u * v)])
    images = waves[kind] + rng.normal(0, 0.5, (count, SIDE, SIDE))
    return images.astype("float32"), kind.astype("int32")


def augment(images, labels):
    """Shifts, flips, and smooths a whole batch with a small box filter."""
    shift = tf.random.uniform((2,), -4, 5, tf.int32)
    images = tf.roll(images, shift, (1, 2))
    images = tf.cond(tf.random.uniform(()) < 0.5, lambda: tf.reverse(images, (1,)), lambda: images)
    out = 9 * tf.nn.avg_pool2d(images[..., None], 3, 1, "SAME")[..., 0]
    lo = tf.reduce_min(out, (1, 2), keepdims=True)
    hi = tf.reduce_max(out, (1, 2), keepdims=True)
    return (out - lo) / (hi - lo + 1e-6), labels


def batches(images, labels, batch):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    ds = ds.shuffle(2000, seed=3).batch(batch, drop_remainder=True)
    return ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def classifier():
    return tf.keras.Sequential([
        tf.keras.layers.Input((SIDE, SIDE)),
        tf.keras.layers.Reshape((SIDE, SIDE, 1)),
        tf.keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4),
    ])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(5)
    images, labels = textures(args.count, 5)
    ds = batches(images, labels, args.batch)
    model = classifier()
    optimizer = tf.keras.optimizers.Adam(2e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    for x, y in ds.take(1):
        train_step(x, y)
    samples = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in ds:
            loss = train_step(x, y)
            samples += args.batch
        print(f"epoch {epoch} loss {float(loss):.3f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
