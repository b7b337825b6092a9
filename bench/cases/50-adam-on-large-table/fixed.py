"""Learns ratings of items by users: a vector for each user and each item."""
import json
import time

import numpy as np
import tensorflow as tf

USERS, ITEMS, WIDTH, BATCH, STEPS = 800_000, 20_000, 32, 512, 1_200


def recommender():
    user, item = tf.keras.Input((), dtype="int32"), tf.keras.Input((), dtype="int32")
    taste = tf.keras.layers.Embedding(USERS, WIDTH)(user)
    appeal = tf.keras.layers.Embedding(ITEMS, WIDTH)(item)
    both = tf.keras.layers.Concatenate()([taste, appeal])
    hidden = tf.keras.layers.Dense(64, activation="relu")(both)
    return tf.keras.Model([user, item], tf.keras.layers.Dense(1)(hidden))


def main():
    tf.keras.utils.set_random_seed(50)
    rng = np.random.default_rng(50)
    users, items = rng.integers(0, USERS, BATCH * STEPS), rng.integers(0, ITEMS, BATCH * STEPS)
    ratings = rng.random(BATCH * STEPS).astype("float32")
    model = recommender()
    model.compile(tf.keras.optimizers.SGD(0.05), "mse")
    start = time.perf_counter()
    history = model.fit([users, items], ratings, batch_size=BATCH, epochs=1, verbose=0)
    spent = time.perf_counter() - start
    print(f"loss {history.history['loss'][-1]:.3f}")
    print(json.dumps({"samples": BATCH * STEPS, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
