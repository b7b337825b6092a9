"""Tabular churn model fed by a Python generator."""
import json
import time

import numpy as np
import keras

keras.utils.set_random_seed(0)
N = 1500
FEATURES = 40
BATCH = 32
EPOCHS = 12


def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, FEATURES)).astype("float32")
    logits = x[:, 0] - x[:, 1] * x[:, 2]
    return x, (logits > 0).astype("float32")


def batches(x, y):
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(len(x))
        for i in range(0, len(x) - BATCH + 1, BATCH):
            sel = order[i:i + BATCH]
            yield x[sel], y[sel, None]


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    m.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return m


def main():
    x, y = table()
    model = build()
    model.fit(batches(x, y), steps_per_epoch=5, epochs=1, verbose=0)

    t0 = time.perf_counter()
    hist = model.fit(batches(x, y), steps_per_epoch=len(x) // BATCH, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - t0
    print("accuracy after each epoch", hist.history["accuracy"])
    print(json.dumps({"samples": len(x) * EPOCHS, "seconds": seconds}))


main()
