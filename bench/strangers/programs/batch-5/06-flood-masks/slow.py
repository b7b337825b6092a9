"""Flood mapping: segment water in two-band radar tiles.

The operations team picks the alarm threshold from the precision/recall curve
of the validation tiles, so the curve is written after every epoch.
"""
import csv
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

TILE = 64
THRESHOLDS = [round(float(t), 3) for t in np.linspace(0.005, 0.995, 199)]


def make_tiles(n, seed):
    """Speckled backscatter with smooth water bodies; VV and VH bands."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:TILE, 0:TILE] / TILE
    phase = rng.uniform(0, 2 * np.pi, (4, n, 1, 1))
    freq = rng.uniform(1, 3, (4, n, 1, 1))
    field = (np.sin(2 * np.pi * freq[0] * xx + phase[0]) + np.sin(2 * np.pi * freq[1] * yy + phase[1])
             + np.sin(2 * np.pi * freq[2] * (xx + yy) + phase[2]))
    water = field > 0.9
    speckle = rng.gamma(4.0, 0.25, size=(n, TILE, TILE, 2))
    level = np.where(water[..., None], [0.12, 0.05], [0.45, 0.20])
    db = 10 * np.log10(level * speckle + 1e-3)
    return (db / 10 + 1).astype("float32"), water[..., None].astype("float32")


def dataset(tiles, masks, batch, training):
    ds = tf.data.Dataset.from_tensor_slices((tiles, masks))
    if training:
        ds = ds.shuffle(len(tiles), seed=1)
    return ds.batch(batch, drop_remainder=True).prefetch(2)


def conv(x, filters):
    return keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)


def small_unet():
    inputs = keras.Input((TILE, TILE, 2))
    c1 = conv(inputs, 8)
    c2 = conv(keras.layers.MaxPooling2D()(c1), 16)
    c3 = conv(keras.layers.MaxPooling2D()(c2), 32)
    u2 = keras.layers.Concatenate()([keras.layers.UpSampling2D()(c3), c2])
    u2 = conv(u2, 16)
    u1 = keras.layers.Concatenate()([keras.layers.UpSampling2D()(u2), c1])
    outputs = keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")(conv(u1, 8))
    return keras.Model(inputs, outputs)


class CurveWriter(keras.callbacks.Callback):
    """One row per threshold and epoch, from the validation part of the logs."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        with open(path, "w", newline="") as f:
            csv.writer(f).writerow(["epoch", "threshold", "precision", "recall"])

    def on_epoch_end(self, epoch, logs=None):
        precision = np.asarray(logs["val_precision"])
        recall = np.asarray(logs["val_recall"])
        with open(self.path, "a", newline="") as f:
            csv.writer(f).writerows((epoch, t, float(p), float(r))
                                    for t, p, r in zip(THRESHOLDS, precision, recall))


class EpochTimer(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.starts = []

    def on_epoch_begin(self, epoch, logs=None):
        self.starts.append(time.perf_counter())

    def on_train_end(self, logs=None):
        self.end = time.perf_counter()

    def seconds(self):
        return self.end - self.starts[1]


def compile_model(model):
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=[
            keras.metrics.BinaryAccuracy(name="accuracy"),
            keras.metrics.Precision(thresholds=THRESHOLDS, name="precision"),
            keras.metrics.Recall(thresholds=THRESHOLDS, name="recall"),
        ],
    )


def main(n_train=320, n_val=64, batch=16, epochs=4):
    keras.utils.set_random_seed(3)
    train = dataset(*make_tiles(n_train, 1), batch, training=True)
    val = dataset(*make_tiles(n_val, 2), batch, training=False)
    model = small_unet()
    compile_model(model)
    timer = EpochTimer()
    with tempfile.TemporaryDirectory() as tmp:
        curve = os.path.join(tmp, "curve.csv")
        history = model.fit(train, validation_data=val, epochs=epochs, verbose=0,
                            callbacks=[CurveWriter(curve), timer])
        with open(curve) as f:
            rows = sum(1 for _ in f) - 1
    print("val_accuracy", [round(a, 4) for a in history.history["val_accuracy"]], "rows", rows)
    print(json.dumps({"samples": n_train * (epochs - 1), "seconds": round(timer.seconds(), 4)}))


if __name__ == "__main__":
    main()
