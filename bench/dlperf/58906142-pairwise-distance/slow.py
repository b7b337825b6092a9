"""Metric learning: batch-all triplets need the distance between all pairs of embeddings."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(26)
BATCH, FEATURES, EMB = 24, 64, 16
STEPS = 7
WARMUP = 1

net = keras.Sequential(
    [
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(EMB),
    ]
)
opt = keras.optimizers.Adam(1e-3)


def distances(emb):
    rows = []
    for i in range(BATCH):
        row = []
        for j in range(BATCH):
            row.append(tf.sqrt(tf.reduce_sum(tf.square(emb[i] - emb[j])) + 1e-9))
        rows.append(tf.stack(row))
    return tf.stack(rows)


def train_step(x, who):
    with tf.GradientTape() as tape:
        d = distances(net(x, training=True))
        same = tf.equal(who[:, None], who[None, :])
        pos = tf.where(same, d, tf.zeros_like(d))
        neg = tf.where(same, 1e3 * tf.ones_like(d), d)
        loss = tf.reduce_mean(tf.nn.relu(0.5 + tf.reduce_max(pos, axis=1) - tf.reduce_min(neg, axis=1)))
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


def main():
    rng = np.random.default_rng(26)
    centres = rng.normal(size=(6, FEATURES)).astype("float32")
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            t0 = time.perf_counter()
        who = np.arange(BATCH) % 6
        x = centres[who] + rng.normal(size=(BATCH, FEATURES)).astype("float32")
        loss = float(train_step(tf.constant(x), tf.constant(who)))
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
