"""Sparse routing: each token goes to its two best experts."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(17)
TOKENS, DIM, EXPERTS, K = 1024, 64, 16, 2
STEPS = 60
WARMUP = 2

gate = keras.layers.Dense(EXPERTS)
gate.build((None, DIM))
bank = tf.Variable(tf.random.normal((EXPERTS, DIM, DIM)) * 0.05)
params = gate.trainable_variables + [bank]
opt = keras.optimizers.Adam(1e-3)


def best_experts(scores):
    def per_token(row):
        values, which = tf.math.top_k(row, k=K)
        return tf.nn.softmax(values), which

    return tf.map_fn(per_token, scores, fn_output_signature=(tf.float32, tf.int32))


@tf.function
def train_step(x, target):
    with tf.GradientTape() as tape:
        weight, which = best_experts(gate(x))
        mixed = tf.einsum("td,edf->tef", x, bank)
        chosen = tf.gather(mixed, which, batch_dims=1)
        y = tf.reduce_sum(chosen * weight[..., None], axis=1)
        loss = tf.reduce_mean(tf.square(y - target))
    grads = tape.gradient(loss, params)
    opt.apply_gradients(zip(grads, params))
    return loss


def main():
    rng = np.random.default_rng(17)
    maps = rng.normal(size=(4, DIM, DIM)).astype("float32") / 8
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            t0 = time.perf_counter()
        x = rng.normal(size=(TOKENS, DIM)).astype("float32")
        group = (x[:, 0] > 0).astype(int) * 2 + (x[:, 1] > 0)
        target = np.einsum("td,tdf->tf", x, maps[group])
        loss = float(train_step(tf.constant(x), tf.constant(target)))
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * TOKENS, "seconds": seconds}))


main()
