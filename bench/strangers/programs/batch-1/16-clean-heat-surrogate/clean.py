"""Convolutional surrogate of a heat equation solver: (field, conductivity) -> field some time later."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE = 32
SAMPLES, VALID = 256, 32
BATCH = 32
EPOCHS = 3


def solve(field, kappa, steps=40, dt=0.1):
    for _ in range(steps):
        east = np.roll(field, -1, 2) - field
        south = np.roll(field, -1, 1) - field
        fx, fy = kappa * east, kappa * south
        field = field + dt * (fx - np.roll(fx, 1, 2) + fy - np.roll(fy, 1, 1))
    return field


def make_fields(n, seed):
    rng = np.random.default_rng(seed)
    field = rng.normal(0, 1, (n, SIZE, SIZE)).astype(np.float32)
    field = solve(field, np.float32(1.0), 10) * 4
    kappa = 0.2 + 1.6 * rng.random((n, 1, 1), dtype=np.float32) * np.ones_like(field)
    kappa[:, SIZE // 3: 2 * SIZE // 3] *= 0.3
    return np.stack([field, kappa], -1).astype(np.float32), solve(field, kappa)[..., None].astype(np.float32)


def make_dataset(fields, training):
    ds = tf.data.Dataset.from_tensor_slices(fields)
    if training:
        ds = ds.shuffle(SAMPLES, seed=0)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def build_surrogate():
    inputs = layers.Input((SIZE, SIZE, 2))
    x = layers.Conv2D(48, 5, padding="same", activation="relu")(inputs)
    for _ in range(3):
        y = layers.Conv2D(48, 3, padding="same", activation="relu")(x)
        y = layers.Conv2D(48, 3, padding="same")(y)
        x = layers.Add()([x, y])
    delta = layers.Conv2D(1, 3, padding="same")(x)
    return keras.Model(inputs, layers.Add()([inputs[..., :1], delta]))


class EpochTimes(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.ends = []

    def on_epoch_end(self, epoch, logs=None):
        self.ends.append(time.perf_counter())
        print(f"epoch {epoch}: loss {logs['loss']:.4f} val {logs['val_loss']:.4f}", flush=True)


def main():
    keras.utils.set_random_seed(0)
    train = make_dataset(make_fields(SAMPLES, 1), True)
    valid = make_dataset(make_fields(VALID, 2), False)
    model = build_surrogate()
    model.compile(optimizer=keras.optimizers.Adam(5e-4), loss="mse")
    times = EpochTimes()
    with tempfile.TemporaryDirectory() as folder:
        best = keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"), save_best_only=True,
                                               save_weights_only=True, monitor="val_loss")
        model.fit(train, validation_data=valid, epochs=EPOCHS, verbose=0, callbacks=[best, times])
    seconds = times.ends[-1] - times.ends[0]
    print(json.dumps({"samples": (EPOCHS - 1) * (SAMPLES // BATCH) * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
