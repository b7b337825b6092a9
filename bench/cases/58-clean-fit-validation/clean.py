"""Energy forecasts: fit with a validation split, early stopping and a checkpoint of the best epoch."""
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf


def windows(count, length, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(length + 1)
    series = np.sin(2 * np.pi * (t[None] / 24 + rng.random((count, 1)))) * rng.uniform(0.5, 2, (count, 1))
    series = (series + rng.normal(0, 0.1, series.shape)).astype("float32")
    return series[:, :-1], series[:, -1:]


class EpochTimes(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch} took {time.perf_counter() - self.began:.2f} s")


def main():
    tf.keras.utils.set_random_seed(103)
    x, y = windows(30000, 168, 103)
    split = 27000
    model = tf.keras.Sequential([tf.keras.layers.Input((168,)), tf.keras.layers.Dense(512, activation="relu"),
                                 tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x[:256], y[:256], batch_size=100, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        callbacks = [
            tf.keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"), save_best_only=True,
                                               save_weights_only=True),
            tf.keras.callbacks.EarlyStopping(patience=8),
            EpochTimes(),
        ]
        start = time.perf_counter()
        history = model.fit(x[:split], y[:split], batch_size=100, epochs=8, callbacks=callbacks, verbose=2,
                            validation_data=(x[split:], y[split:]), validation_batch_size=500)
        seconds = time.perf_counter() - start
    print(json.dumps({"samples": len(history.epoch) * split, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
