"""Land-cover segmentation of multispectral tiles with a compact U-Net."""
import argparse
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

BANDS, CLASSES, TILE = 6, 5, 96
SIGNATURES = np.random.default_rng(40).uniform(0.05, 0.6, (CLASSES, BANDS)).astype(np.float32)


def synth_tile(rng):
    """Smooth random fields decide the class of each pixel; the bands follow its signature."""
    coarse = rng.normal(size=(CLASSES, 7, 7)).astype(np.float32)
    fine = np.repeat(np.repeat(coarse, 14, axis=1), 14, axis=2)[:, :TILE, :TILE]
    yy, xx = np.mgrid[0:TILE, 0:TILE] / TILE
    fine[0] += np.sin(6 * xx + rng.uniform(0, 6))
    fine[1] += np.cos(5 * yy + rng.uniform(0, 6))
    mask = fine.argmax(axis=0)
    bands = SIGNATURES[mask] * rng.uniform(0.8, 1.2) + rng.normal(0, 0.03, (TILE, TILE, BANDS))
    return bands.astype(np.float32), mask.astype(np.uint8)


def synth_scene(count, seed):
    rng = np.random.default_rng(seed)
    tiles, masks = zip(*(synth_tile(rng) for _ in range(count)))
    tiles = np.stack(tiles)
    return (tiles - 0.3) / 0.2, np.stack(masks)


def augment(tiles, masks):
    """One of the flips and quarter turns for the whole batch."""
    both = tf.concat([tiles, tf.cast(masks, tf.float32)[..., None]], axis=-1)
    if tf.random.uniform([]) < 0.5:
        both = tf.reverse(both, axis=[1])
    if tf.random.uniform([]) < 0.5:
        both = tf.reverse(both, axis=[2])
    if tf.random.uniform([]) < 0.5:
        both = tf.transpose(both, [0, 2, 1, 3])
    both = tf.ensure_shape(both, [None, TILE, TILE, BANDS + 1])
    return both[..., :BANDS], tf.cast(both[..., BANDS], tf.uint8)


def train_pipeline(tiles, masks, batch):
    ds = tf.data.Dataset.from_tensor_slices((tiles, masks))
    ds = ds.shuffle(len(tiles), seed=4).batch(batch, drop_remainder=True)
    return ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def valid_pipeline(tiles, masks, batch):
    ds = tf.data.Dataset.from_tensor_slices((tiles, masks))
    return ds.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def double_conv(x, filters):
    for _ in range(2):
        x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


def build_unet(width):
    inp = keras.Input((TILE, TILE, BANDS))
    skips, x = [], inp
    for level in range(3):
        x = double_conv(x, width * 2 ** level)
        skips.append(x)
        x = keras.layers.MaxPooling2D(2)(x)
    x = double_conv(x, width * 8)
    for level in reversed(range(3)):
        x = keras.layers.Conv2DTranspose(width * 2 ** level, 2, strides=2)(x)
        x = keras.layers.Concatenate()([x, skips[level]])
        x = double_conv(x, width * 2 ** level)
    return keras.Model(inp, keras.layers.Conv2D(CLASSES, 1)(x))


class EpochClock(keras.callbacks.Callback):
    """Counts the time from the end of the first epoch."""

    def __init__(self):
        super().__init__()
        self.start = None
        self.seconds = 0.0

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.start = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.start


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tiles", type=int, default=96)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--width", type=int, default=16)
    args = ap.parse_args()
    keras.utils.set_random_seed(9)
    folder = tempfile.mkdtemp(prefix="landcover_")

    train = train_pipeline(*synth_scene(args.tiles, 1), args.batch)
    valid = valid_pipeline(*synth_scene(args.tiles // 6, 2), args.batch)
    model = build_unet(args.width)
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="pixel_acc")])
    clock = EpochClock()
    model.fit(
        train, validation_data=valid, epochs=args.epochs, verbose=2,
        callbacks=[
            keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.keras"),
                                            monitor="val_pixel_acc", save_best_only=True),
            keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=2),
            keras.callbacks.CSVLogger(os.path.join(folder, "history.csv")),
            clock])
    samples = (args.epochs - 1) * (args.tiles // args.batch) * args.batch
    print(json.dumps({"samples": samples, "seconds": round(clock.seconds, 4)}))


if __name__ == "__main__":
    main()
