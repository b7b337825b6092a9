"""Leaf disease classifier: a small residual CNN trained with Keras fit."""
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

SIZE = 64
N_CLASSES = 5
BATCH = 64
EPOCHS = 3
N_TRAIN = 320
N_VALID = 64


def make_leaves(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n).astype(np.int32)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) / SIZE
    images = np.empty((n, SIZE, SIZE, 3), np.float32)
    for i, label in enumerate(labels):
        cx, cy = rng.uniform(0.3, 0.7, 2)
        radius = np.sqrt((xx - cx) ** 2 + (yy - cy) ** 2)
        spots = np.sin((label + 2) * 12.0 * radius)
        images[i] = np.stack([0.3 + 0.2 * spots, 0.6 - 0.1 * spots, 0.2 + 0.0 * spots], axis=-1)
    images += rng.normal(0.0, 0.08, images.shape).astype(np.float32)
    return images, labels


def make_dataset(images, labels, training):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        data = data.shuffle(len(images), seed=1)
    data = data.batch(BATCH, drop_remainder=training)
    return data.prefetch(tf.data.AUTOTUNE)


def residual_block(x, filters):
    shortcut = layers.Conv2D(filters, 1, strides=2, use_bias=False)(x)
    x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(layers.Add()([x, shortcut]))


def build_model():
    inputs = keras.Input((SIZE, SIZE, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(inputs)
    for filters in (64, 128, 192):
        x = residual_block(x, filters)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(N_CLASSES)(x)
    return keras.Model(inputs, outputs)


class EpochTimer(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seconds = 0.0
        self.steps = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if self.epoch > 0:
            self.steps += 1

    def on_epoch_end(self, epoch, logs=None):
        if epoch > 0:
            self.seconds += time.perf_counter() - self.began


def main():
    keras.utils.set_random_seed(6)
    train = make_dataset(*make_leaves(N_TRAIN, 0), training=True)
    valid = make_dataset(*make_leaves(N_VALID, 1), training=False)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    timer = EpochTimer()
    with tempfile.TemporaryDirectory() as folder:
        best = os.path.join(folder, "best.weights.h5")
        callbacks = [
            timer,
            keras.callbacks.ModelCheckpoint(best, monitor="val_loss", save_best_only=True, save_weights_only=True),
            keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=2),
        ]
        model.fit(train, validation_data=valid, epochs=EPOCHS, callbacks=callbacks, verbose=2)
    print(json.dumps({"samples": timer.steps * BATCH, "seconds": round(timer.seconds, 4)}))


if __name__ == "__main__":
    main()
