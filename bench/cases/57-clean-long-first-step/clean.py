"""A deep, narrow residual network: its graph takes a while to build once, then it trains for many steps."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers


def block(h, width, index):
    x = layers.LayerNormalization(name=f"norm{index}")(h)
    x = layers.Dense(width, activation="relu", name=f"up{index}")(x)
    x = layers.Dense(h.shape[-1], name=f"down{index}")(x)
    return layers.add([h, x], name=f"sum{index}")


def deep_net(dim, depth):
    inputs = tf.keras.Input((dim,))
    h = layers.Dense(160)(inputs)
    for index in range(depth):
        h = block(h, 160, index)
    model = tf.keras.Model(inputs, layers.Dense(1)(h))
    model.compile(tf.keras.optimizers.Adam(1e-4), "mse")
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=40)
    parser.add_argument("--rows", type=int, default=25600)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(101)
    rng = np.random.default_rng(101)
    x = rng.standard_normal((args.rows, 64)).astype("float32")
    y = np.sin(x[:, :8]).prod(1, keepdims=True)
    model = deep_net(64, args.depth)
    began = time.perf_counter()
    model.train_on_batch(x[:128], y[:128])
    print(f"first step {time.perf_counter() - began:.1f} s")
    start = time.perf_counter()
    model.fit(x, y, batch_size=128, epochs=1, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.rows, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
