"""Trains a regressor of house prices; a report that colleagues watch is written anew after every batch."""
import json
import os
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf

keras = tf.keras


def houses(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 48)).astype("float32")
    price = x[:, :6].sum(1) + np.sin(x[:, 6] * 2) * x[:, 7] + rng.normal(0, 0.1, count)
    return x, price.astype("float32")[:, None]


def sparkline(values, width=60):
    """The values as a line of blocks, their mean in each column."""
    low, high = min(values), max(values)
    columns = [[] for _ in range(width)]
    for place, value in enumerate(values):
        columns[place * width // len(values)].append(value)
    marks = []
    for column in columns:
        level = (sum(column) / len(column) - low) / (high - low + 1e-9) if column else 0
        marks.append(" .:-=+*#%@"[int(9 * level)])
    return "".join(marks)


class LiveReport(keras.callbacks.Callback):
    """A text file with the course of the loss so far."""

    def __init__(self, path, every=1):
        super().__init__()
        self.path, self.every = path, every
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))
        if len(self.losses) % self.every == 0:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(f"{len(self.losses)} batches, best {min(self.losses):.4f}\n{sparkline(self.losses)}\n")


def regressor():
    net = keras.Sequential([
        keras.layers.Input((48,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(1),
    ])
    net.compile(keras.optimizers.Adam(1e-3), "mse")
    return net


def main():
    keras.utils.set_random_seed(31)
    x, y = houses(32_000, 31)
    net = regressor()
    net.train_on_batch(x[:32], y[:32])
    folder = tempfile.mkdtemp(prefix="report-")
    try:
        start = time.perf_counter()
        net.fit(x, y, batch_size=16, epochs=5, verbose=2, callbacks=[LiveReport(os.path.join(folder, "loss.txt"))])
        seconds = time.perf_counter() - start
    finally:
        shutil.rmtree(folder)
    print(json.dumps({"samples": 5 * len(x), "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
