"""Top-k sparse autoencoder: only the largest activations of each row may pass."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(16)
VISIBLE, CODE, KEEP = 96, 192, 12
BATCH = 64
STEPS = 12
WARMUP = 2

enc = keras.layers.Dense(CODE, activation="relu")
dec = keras.layers.Dense(VISIBLE)
enc.build((None, VISIBLE))
dec.build((None, CODE))
variables = enc.trainable_variables + dec.trainable_variables
opt = keras.optimizers.Adam(1e-3)
rng = np.random.default_rng(16)
basis = rng.normal(size=(20, VISIBLE)).astype("float32")


def get_mask(code):
    rows = []
    for row in code:
        floor = tf.sort(row, direction="DESCENDING")[KEEP - 1]
        bits = []
        for value in tf.unstack(row):
            bits.append(1.0 if value >= floor else 0.0)
        rows.append(bits)
    return tf.constant(rows)


def step(x):
    mask = get_mask(enc(x))
    with tf.GradientTape() as tape:
        rebuilt = dec(enc(x) * mask)
        loss = tf.reduce_mean(tf.square(rebuilt - x))
    grads = tape.gradient(loss, variables)
    opt.apply_gradients(zip(grads, variables))
    return loss


def main():
    loss = None
    for i in range(WARMUP + STEPS):
        if i == WARMUP:
            t0 = time.perf_counter()
        mix = rng.normal(size=(BATCH, 20)).astype("float32")
        loss = step(tf.constant(mix @ basis))
    loss = float(loss)
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
