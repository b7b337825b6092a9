"""Genotype model: a fixed list of marker columns is taken from the big matrix at each step."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(34)
BATCH, MARKERS, PICK = 64, 1500, 300
STEPS = 100
WARMUP = 3

rng = np.random.default_rng(34)
chosen = np.sort(rng.choice(MARKERS, PICK, replace=False)).tolist()
dense1 = keras.layers.Dense(32, activation="relu")
dense2 = keras.layers.Dense(1)
dense1.build((None, PICK))
dense2.build((None, 32))
params = dense1.trainable_variables + dense2.trainable_variables
opt = keras.optimizers.SGD(0.01)
effect = rng.normal(size=PICK).astype("float32") / PICK


def pick_columns(genotypes):
    return tf.concat([genotypes[:, j:j + 1] for j in chosen], axis=1)


def train_step(genotypes, trait):
    x = pick_columns(genotypes)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(dense2(dense1(x))[:, 0] - trait))
    grads = tape.gradient(loss, params)
    opt.apply_gradients(zip(grads, params))
    return loss


def main():
    loss = None
    for step in range(STEPS + WARMUP):
        if step == WARMUP:
            t0 = time.perf_counter()
        genotypes = rng.integers(0, 3, size=(BATCH, MARKERS)).astype("float32")
        trait = genotypes[:, chosen] @ effect
        loss = train_step(tf.constant(genotypes), tf.constant(trait))
    loss = float(loss)
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
