"""Sliding re-forecast: each new hour the last day is put into a Dataset and scored."""
import json
import os
import time

import numpy as np
import tensorflow as tf

HOURS = 60
ROWS = 2048


def rss_mib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def build():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((96,)),
            tf.keras.layers.Dense(512, activation="relu"),
            tf.keras.layers.Dense(512, activation="relu"),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    return model


def main():
    rng = np.random.default_rng(0)
    history = rng.normal(size=(ROWS + HOURS + 10, 96)).astype("float32")
    model = build()
    model.fit(history[:1024], history[:1024, :1], verbose=0)

    def score(hour):
        window = history[hour:hour + ROWS]
        return model.predict(window, batch_size=512, verbose=0)

    for h in range(5):
        score(h)
    times, trail, acc = [], [], 0.0
    t0 = time.perf_counter()
    for h in range(HOURS):
        t = time.perf_counter()
        acc += float(score(h + 5).mean())
        times.append(time.perf_counter() - t)
        if h % 10 == 9:
            trail.append(round(rss_mib()))
    seconds = time.perf_counter() - t0
    print("rss (MiB)", trail)
    print("first quarter ms", 1e3 * np.mean(times[:HOURS // 4]), "last quarter ms", 1e3 * np.mean(times[-HOURS // 4:]))
    print(json.dumps({"samples": HOURS * ROWS, "seconds": seconds}))


main()
