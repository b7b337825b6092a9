"""Pump failure warning: 36-hour windows of sensor readings of many sites, fed to a small convolutional network."""
import json
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SITES = 30
HOURS = 700
SENSORS = 20
WINDOW = 36
BATCH = 32
EPOCH_STEPS = 160
EPOCHS = 16


def make_readings(seed=33):
    """Rows as the historian exports them: site, hour, sensors ... , alarm flag."""
    rng = np.random.default_rng(seed)
    rows = np.empty((SITES * HOURS, SENSORS + 3), dtype=object)
    r = 0
    for s in range(SITES):
        level = rng.normal(0, 1, SENSORS) * 10 + 50
        wear = 0.0
        for h in range(HOURS):
            wear = 0.0 if wear > 1 else wear + rng.uniform(0, 0.02)
            values = level + 4 * np.sin(h / 24 * 2 * np.pi) + rng.normal(0, 1.5, SENSORS)
            values[:4] += 8 * wear
            rows[r, 0] = f"SITE{s:02d}"
            rows[r, 1] = h
            rows[r, 2:-1] = values.tolist()
            rows[r, -1] = int(wear > 0.8)
            r += 1
    return rows


class WindowSampler:
    def __init__(self, rows, seed=34):
        self.rows = rows
        self.rng = np.random.default_rng(seed)
        self.readings = rows[:, 2:-1]
        self.alarm = rows[:, -1]
        self.site_mean = {}
        self.site_scale = {}
        for name in sorted(set(rows[:, 0])):
            mine = self.readings[rows[:, 0] == name]
            self.site_mean[name] = mine.mean(axis=0)
            self.site_scale[name] = np.std(mine.astype("float32"), axis=0)

    def window(self, start):
        name = self.rows[start, 0]
        w = (self.readings[start:start + WINDOW] - self.site_mean[name]) / self.site_scale[name]
        daily = w - w.mean(axis=0)
        return np.clip(w, -6.0, 6.0), daily

    def __call__(self):
        while True:
            site = self.rng.integers(0, SITES, BATCH)
            hour = self.rng.integers(0, HOURS - WINDOW, BATCH)
            x, y = [], []
            for start in site * HOURS + hour:
                w, daily = self.window(start)
                x.append(np.concatenate([w, daily], axis=1))
                y.append(self.alarm[start + WINDOW - 1])
            yield np.stack(x).astype("float32"), np.array(y, dtype="float32")


def make_dataset(sampler):
    spec = (
        tf.TensorSpec((BATCH, WINDOW, 2 * SENSORS), tf.float32),
        tf.TensorSpec((BATCH,), tf.float32),
    )
    return tf.data.Dataset.from_generator(sampler, output_signature=spec).prefetch(4)


def build_model():
    inp = keras.Input((WINDOW, 2 * SENSORS))
    x = layers.Conv1D(24, 5, padding="same", activation="relu")(inp)
    x = layers.Conv1D(24, 5, padding="same", activation="relu")(x)
    x = layers.MaxPooling1D(2)(x)
    x = layers.Conv1D(32, 3, padding="same", activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    return keras.Model(inp, layers.Dense(1, activation="sigmoid")(x))


class Clock(keras.callbacks.Callback):
    seconds = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if epoch:
            self.seconds += time.perf_counter() - self.begin


def main():
    keras.utils.set_random_seed(35)
    sampler = WindowSampler(make_readings())
    model = build_model()
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
    clock = Clock()
    hist = model.fit(
        make_dataset(sampler), steps_per_epoch=EPOCH_STEPS, epochs=EPOCHS, callbacks=[clock], verbose=0
    )
    print("loss", [round(v, 4) for v in hist.history["loss"]][::3])
    print(json.dumps({"samples": (EPOCHS - 1) * EPOCH_STEPS * BATCH, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
