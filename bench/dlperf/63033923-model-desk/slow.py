"""Prediction desk: requests name a customer, each customer has a saved model."""
import json
import os
import pathlib
import shutil
import tempfile
import time

import numpy as np
import keras

CUSTOMERS = 3
REQUESTS = 15
ROWS = 256


def rss_mib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def train_and_save(folder):
    rng = np.random.default_rng(0)
    for c in range(CUSTOMERS):
        m = keras.Sequential(
            [
                keras.layers.Input((64,)),
                keras.layers.Dense(1024, activation="relu"),
                keras.layers.Dense(1024, activation="relu"),
                keras.layers.Dense(512, activation="relu"),
                keras.layers.Dense(1),
            ]
        )
        m.compile("adam", "mse")
        x = rng.normal(size=(256, 64)).astype("float32")
        m.fit(x, x[:, c:c + 1], verbose=0)
        m.save(folder / f"customer_{c}.keras")


class Desk:
    def __init__(self, folder):
        self.folder = folder
        self.open_models = []

    def answer(self, customer, rows):
        model = keras.models.load_model(self.folder / f"customer_{customer}.keras")
        self.open_models.append(model)
        return model.predict_on_batch(rows)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="desk_"))
    try:
        train_and_save(folder)
        rng = np.random.default_rng(1)
        desk = Desk(folder)
        for c in range(CUSTOMERS):
            desk.answer(c, rng.normal(size=(ROWS, 64)).astype("float32"))
        start = rss_mib()
        t0 = time.perf_counter()
        mean = 0.0
        for r in range(REQUESTS):
            rows = rng.normal(size=(ROWS, 64)).astype("float32")
            mean += float(np.mean(desk.answer(r % CUSTOMERS, rows)))
        seconds = time.perf_counter() - t0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("rss grew by (MiB)", round(rss_mib() - start), "mean", mean / REQUESTS)
    print(json.dumps({"samples": REQUESTS * ROWS, "seconds": seconds}))


main()
