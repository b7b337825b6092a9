"""Linear attention encoder for long sensor sequences."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras


LENGTH = 1024
DIM = 32
BATCH = 8
STEPS = 200


class LinearAttention(keras.layers.Layer):
    def __init__(self, dim):
        super().__init__()
        self.q = keras.layers.Dense(dim, activation="elu")
        self.k = keras.layers.Dense(dim, activation="elu")
        self.v = keras.layers.Dense(dim)

    def call(self, x):
        q = self.q(x) + 1.0
        k = self.k(x) + 1.0
        v = self.v(x)
        summary = tf.matmul(k, v, transpose_a=True)
        return tf.matmul(q, summary) / LENGTH


def build():
    inputs = keras.Input((LENGTH, 6))
    x = keras.layers.Dense(DIM)(inputs)
    for _ in range(2):
        x = keras.layers.LayerNormalization()(x + LinearAttention(DIM)(x))
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(inputs, keras.layers.Dense(1)(x))


def main():
    keras.utils.set_random_seed(13)
    rng = np.random.default_rng(13)
    x = rng.normal(size=(BATCH * 20, LENGTH, 6)).astype("float32")
    y = x.mean((1, 2))
    model = build()
    model.compile("adam", "mse")
    start = time.perf_counter()
    model.fit(x, y, batch_size=BATCH, epochs=STEPS // 20, verbose=2)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()
