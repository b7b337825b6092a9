"""Morphology of simulated galaxy cut-outs: spiral, elliptical or edge-on."""
import json
import os
import tempfile
import time

import keras
import numpy as np
from keras import layers

SIDE = 48
IMAGES = 2304
VALID = 256
BATCH = 64
EPOCHS = 4
CLASSES = 3


def draw_galaxies(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=count).astype(np.int32)
    grid = np.linspace(-1, 1, SIDE, dtype=np.float32)
    x, y = np.meshgrid(grid, grid)
    angle = rng.uniform(0, np.pi, (count, 1, 1)).astype(np.float32)
    xr = x * np.cos(angle) + y * np.sin(angle)
    yr = -x * np.sin(angle) + y * np.cos(angle)
    flatness = np.choose(labels, [0.9, 0.7, 0.2]).astype(np.float32)[:, None, None]
    radius = np.sqrt(xr**2 + (yr / flatness) ** 2)
    images = np.exp(-3.5 * radius)
    arms = 0.5 * np.cos(2 * np.arctan2(yr, xr) - 9 * radius) * np.exp(-2.5 * radius)
    images += np.where(labels[:, None, None] == 0, arms, 0)
    images += 0.15 * rng.standard_normal(images.shape, dtype=np.float32)
    return images[..., None].astype(np.float32), labels


def conv_block(x, filters):
    for stride in (2, 1):
        x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def build_model():
    inputs = keras.Input((SIDE, SIDE, 1))
    x = inputs
    for filters in (32, 64, 128):
        x = conv_block(x, filters)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(CLASSES, activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


class Stopwatch(keras.callbacks.Callback):
    """Times everything after the first epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.started = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.started


def main():
    keras.utils.set_random_seed(0)
    x, y = draw_galaxies(IMAGES, seed=1)
    x_valid, y_valid = draw_galaxies(VALID, seed=2)
    model = build_model()
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        callbacks = [
            watch,
            keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=2),
            keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"), monitor="val_loss",
                                            save_best_only=True, save_weights_only=True),
            keras.callbacks.CSVLogger(os.path.join(folder, "history.csv")),
        ]
        history = model.fit(x, y, batch_size=BATCH, epochs=EPOCHS + 1, validation_data=(x_valid, y_valid),
                            callbacks=callbacks, verbose=2)
    print("best validation accuracy", round(max(history.history["val_accuracy"]), 3))
    print(json.dumps({"samples": EPOCHS * IMAGES, "seconds": round(watch.seconds, 3)}))


if __name__ == "__main__":
    main()
