"""Click-through model: embeddings, crossed features and a small tower, trained with fit."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf

keras = tf.keras


class Cross(keras.layers.Layer):
    """One layer of a deep-and-cross network: x0 * (W x + b) + x."""

    def build(self, shape):
        width = shape[0][-1]
        self.kernel = self.add_weight(shape=(width, width), initializer="glorot_uniform", name="kernel")
        self.bias = self.add_weight(shape=(width,), initializer="zeros", name="bias")
        self.built = True

    def call(self, inputs):
        first, x = inputs
        return first * (tf.matmul(x, self.kernel) + self.bias) + x


class ClickModel(keras.Model):
    def __init__(self, fields, vocabulary, crosses):
        super().__init__()
        self.tables = [keras.layers.Embedding(vocabulary, 8) for _ in range(fields)]
        self.crosses = [Cross() for _ in range(crosses)]
        self.tower = [keras.layers.Dense(32, activation="relu") for _ in range(2)]
        self.out = keras.layers.Dense(1, activation="sigmoid")

    def call(self, ids, training=False):
        first = tf.concat([table(ids[:, i]) for i, table in enumerate(self.tables)], -1)
        x = first
        for cross in self.crosses:
            x = cross([first, x])
        for layer in self.tower:
            x = layer(x)
        return self.out(x)


def log(rows, fields, vocabulary, seed=20):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, vocabulary, (rows, fields)).astype("int32")
    taste = rng.normal(0, 1, (fields, vocabulary))
    score = sum(taste[i, ids[:, i]] for i in range(fields))
    return ids, (score > 0).astype("float32")[:, None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12800)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    keras.utils.set_random_seed(20)
    ids, clicks = log(args.rows, 8, 200)
    model = ClickModel(8, 200, 4)
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy",
                  metrics=["accuracy"])
    model.fit(ids[:128], clicks[:128], batch_size=64, verbose=0)
    start = time.perf_counter()
    model.fit(ids, clicks, batch_size=64, epochs=args.epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.epochs * args.rows, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
