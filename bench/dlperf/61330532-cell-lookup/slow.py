"""Bilinear-free feature lookup: each query names (batch, row, column) of a feature map."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(23)
B, H, W, C = 8, 32, 32, 32
QUERIES = 256
STEPS = 12
WARMUP = 2

backbone = keras.Sequential(
    [
        keras.layers.Input((H, W, 3)),
        keras.layers.Conv2D(C, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(C, 3, padding="same", activation="relu"),
    ]
)
head = keras.layers.Dense(1)
head.build((None, C))
params = backbone.trainable_variables + head.trainable_variables
opt = keras.optimizers.Adam(1e-3)


def lookup(features, where):
    cells = []
    for b, r, c in where:
        cells.append(features[b, r, c])
    return tf.stack(cells)


def train_step(images, where, depth):
    with tf.GradientTape() as tape:
        features = backbone(images, training=True)
        pred = head(lookup(features, where))[:, 0]
        loss = tf.reduce_mean(tf.abs(pred - depth))
    grads = tape.gradient(loss, params)
    opt.apply_gradients(zip(grads, params))
    return loss


def main():
    rng = np.random.default_rng(23)
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            t0 = time.perf_counter()
        images = rng.random((B, H, W, 3), dtype="float32")
        where = np.stack([rng.integers(0, n, size=QUERIES) for n in (B, H, W)], axis=1).astype("int32")
        depth = images[where[:, 0], where[:, 1], where[:, 2]].mean(axis=-1)
        loss = float(train_step(tf.constant(images), where, tf.constant(depth)))
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * QUERIES, "seconds": seconds}))


main()
