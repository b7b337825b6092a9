"""Clicks: a model of users' next clicks on categories, with a table of its own for the categories."""
import json
import time

import numpy as np
import tensorflow as tf

CATEGORIES, WIDTH, HISTORY = 12000, 48, 6


def clicks(count, seed):
    rng = np.random.default_rng(seed)
    taste = rng.integers(0, 20, count)
    history = (taste[:, None] * 600 + rng.integers(0, 600, (count, HISTORY))) % CATEGORIES
    return history.astype("int32"), (taste % 2).astype("float32")


class Categories(tf.keras.layers.Layer):
    """A vector for each category."""

    def build(self, shape):
        self.table = self.add_weight(shape=(CATEGORIES, WIDTH), initializer="random_normal", name="table")

    def call(self, ids):
        return tf.nn.embedding_lookup(self.table, ids)


class Clicks(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.categories = Categories()
        self.hidden = tf.keras.layers.Dense(64, activation="relu")
        self.out = tf.keras.layers.Dense(1)

    def call(self, history):
        return self.out(self.hidden(tf.reduce_mean(self.categories(history), 1)))[:, 0]


def main():
    tf.keras.utils.set_random_seed(35)
    history, label = clicks(12800, 35)
    model = Clicks()
    model.compile(
        tf.keras.optimizers.SGD(0.1), tf.keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    model.fit(history[:256], label[:256], batch_size=128, verbose=0)
    start = time.perf_counter()
    fitted = model.fit(history, label, batch_size=128, epochs=2, verbose=0)
    seconds = time.perf_counter() - start
    print(f"loss {fitted.history['loss'][-1]:.4f}")
    print(json.dumps({"samples": 2 * len(history), "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
