"""Item-item autoencoder on user histories stored as (item, stars) lists."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(5)
N_ITEMS = 600
BATCH = 32
PER_USER = 25
STEPS = 8
WARMUP = 2


def load_histories(n_users):
    rng = np.random.default_rng(0)
    items = np.stack([rng.choice(N_ITEMS, PER_USER, replace=False) for _ in range(n_users)])
    stars = rng.integers(1, 6, size=(n_users, PER_USER)).astype("float32")
    return items.astype("int32"), stars


def ratings_to_grid(items, stars):
    """items, stars: (batch, PER_USER) -> dense (batch, N_ITEMS)"""
    n = items.shape[0]
    grid = tf.Variable(tf.zeros((n, N_ITEMS)))
    for u in range(n):
        for k in range(PER_USER):
            grid[u, items[u, k]].assign(stars[u, k])
    return tf.convert_to_tensor(grid)


def build():
    inp = keras.Input((N_ITEMS,))
    h = keras.layers.Dense(256, activation="relu")(inp)
    h = keras.layers.Dense(64, activation="relu")(h)
    h = keras.layers.Dense(256, activation="relu")(h)
    out = keras.layers.Dense(N_ITEMS)(h)
    return keras.Model(inp, out)


model = build()
opt = keras.optimizers.Adam(1e-3)


@tf.function
def train_step(grid):
    seen = tf.cast(grid > 0, tf.float32)
    with tf.GradientTape() as tape:
        pred = model(grid, training=True)
        loss = tf.reduce_sum(seen * tf.square(pred - grid)) / tf.reduce_sum(seen)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main():
    items, stars = load_histories(BATCH * (STEPS + WARMUP))
    items = tf.constant(items)
    stars = tf.constant(stars)
    loss = 0.0
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            t0 = time.perf_counter()
        sl = slice(step * BATCH, (step + 1) * BATCH)
        grid = ratings_to_grid(items[sl], stars[sl])
        loss = train_step(grid)
    loss = float(loss)
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
