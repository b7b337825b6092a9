"""Rank chess-like players: a network compares every player with every other."""
import json
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(20)
PLAYERS = 220
SHAPE = (10, 12)


def encoder():
    inp = keras.Input(SHAPE)
    h = layers.Flatten()(inp)
    for units in (512, 512, 256, 64):
        h = layers.Dense(units, activation="relu")(h)
    return keras.Model(inp, h)


def comparer(width):
    a, b = keras.Input((width,)), keras.Input((width,))
    h = layers.Subtract()([a, b])
    h = layers.Dense(20, activation="relu")(h)
    return keras.Model([a, b], layers.Dense(1, activation="sigmoid")(h))


def build():
    enc = encoder()
    cmp = comparer(enc.output_shape[-1])
    a, b = keras.Input(SHAPE), keras.Input(SHAPE)
    full = keras.Model([a, b], cmp([enc(a), enc(b)]))
    full.compile("adam", "binary_crossentropy")
    return enc, cmp, full


def players():
    rng = np.random.default_rng(20)
    return rng.normal(size=(PLAYERS, *SHAPE)).astype("float32")


def all_pairs(enc, cmp, full, x):
    i, j = np.mgrid[0:len(x), 0:len(x)].reshape(2, -1)
    p = full.predict([x[i], x[j]], batch_size=2048, verbose=0)
    return p.reshape(len(x), len(x)).sum(axis=1)


def main():
    x = players()
    enc, cmp, full = build()
    half = len(x) // 2
    full.fit([x[:half], x[half:half * 2]], np.ones((half, 1)), verbose=0)
    all_pairs(enc, cmp, full, x[:50])
    t0 = time.perf_counter()
    wins = all_pairs(enc, cmp, full, x)
    seconds = time.perf_counter() - t0
    print("strongest", int(wins.argmax()))
    print(json.dumps({"samples": len(x) ** 2, "seconds": seconds}))


main()
