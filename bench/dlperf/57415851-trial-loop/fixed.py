"""Random search over layer sizes, one Keras model per trial."""
import json
import os
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

TRIALS = 8
ROWS = 1500
SIZES = [(32, 3), (48, 3), (64, 2), (96, 2)]


def rss_mib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def table():
    rng = np.random.default_rng(30)
    x = rng.normal(size=(ROWS, 25)).astype("float32")
    return x, (x[:, :1] ** 2 + x[:, 1:2] > 1).astype("float32")


def build(width, depth):
    m = keras.Sequential([keras.layers.Input((25,))])
    for _ in range(depth):
        m.add(keras.layers.Dense(width, activation="relu"))
        m.add(keras.layers.BatchNormalization())
    m.add(keras.layers.Dense(1, activation="sigmoid"))
    m.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy")
    return m


def main():
    x, y = table()
    build(16, 1).fit(x[:64], y[:64], verbose=0)
    scores, per_trial, trail = [], [], []
    t0 = time.perf_counter()
    for trial in range(TRIALS):
        t = time.perf_counter()
        width, depth = SIZES[trial % len(SIZES)]
        keras.backend.clear_session()
        model = build(width, depth)
        hist = model.fit(x, y, batch_size=128, epochs=2, verbose=0)
        scores.append((hist.history["loss"][-1], width, depth))
        per_trial.append(round(time.perf_counter() - t, 2))
        trail.append(round(rss_mib()))
    seconds = time.perf_counter() - t0
    print("best", min(scores), "seconds per trial", per_trial)
    print("rss (MiB)", trail)
    print(json.dumps({"samples": TRIALS * ROWS * 2, "seconds": seconds}))


main()
