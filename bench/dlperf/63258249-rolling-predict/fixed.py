"""Rolling-window forecaster: retrain now and then, score the incoming windows all the time."""
import gc
import json
import os
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

WINDOW, FEATURES = 48, 16
ROUNDS = 2
CALLS = 5
ROWS, BATCH = 4096, 256


def rss_mib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def new_model():
    m = keras.Sequential(
        [
            keras.layers.Input((WINDOW, FEATURES)),
            keras.layers.Conv1D(64, 5, activation="relu"),
            keras.layers.Conv1D(64, 5, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    m.compile(optimizer="adam", loss="mse")
    return m


def main():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, WINDOW, FEATURES)).astype("float32")
    y = x[:, -1, :1] * 0.5

    seconds = 0.0
    total = 0
    trail = []
    for rnd in range(ROUNDS + 1):
        keras.backend.clear_session()
        model = new_model()
        model.fit(x[:512], y[:512], batch_size=64, epochs=1, verbose=0)
        model.predict(x[:BATCH], batch_size=BATCH, verbose=0)
        t0 = time.perf_counter()
        err = 0.0
        for _ in range(CALLS):
            pred = np.concatenate([model.predict_on_batch(x[i:i + BATCH]) for i in range(0, ROWS, BATCH)])
            err += float(np.mean((np.asarray(pred) - y) ** 2))
        if rnd > 0:
            seconds += time.perf_counter() - t0
            total += CALLS * ROWS
        del model
        gc.collect()
        trail.append(round(rss_mib(), 1))
    print("rss after each round (MiB)", trail)
    print(json.dumps({"samples": total, "seconds": seconds}))


main()
