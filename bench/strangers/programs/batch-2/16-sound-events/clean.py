"""Sound-event tagging on log-mel patches: Keras fit with tf.data, validation and a checkpoint per epoch."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

FRAMES, MELS, TAGS = 96, 64, 10
TRAIN, VALIDATION = 800, 128
BATCH = 32
EPOCHS = 4


def make_patches(rng, count):
    """Log-mel patches with up to three events, each a band that rises or falls."""
    tags = (rng.random((count, TAGS)) < 0.2).astype(np.float32)
    t = np.arange(FRAMES, dtype=np.float32)[:, None]
    m = np.arange(MELS, dtype=np.float32)[None]
    shapes = []
    for k in range(TAGS):
        centre = 6.0 + 5.5 * k + (4.0 if k % 2 else -4.0) * (t / FRAMES)
        shapes.append(np.exp(-((m - centre) / 2.0) ** 2))
    shapes = np.stack(shapes).reshape(TAGS, -1)
    patches = (tags @ shapes).reshape(count, FRAMES, MELS, 1)
    patches = patches + rng.normal(0.0, 0.3, patches.shape)
    return patches.astype(np.float32), tags


def make_dataset(arrays, training):
    ds = tf.data.Dataset.from_tensor_slices(arrays)
    if training:
        ds = ds.shuffle(TRAIN, seed=16)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def conv_block(x, filters):
    x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return keras.layers.MaxPooling2D()(x)


def build_model():
    inputs = keras.Input((FRAMES, MELS, 1))
    x = inputs
    for filters in (16, 32, 64):
        x = conv_block(x, filters)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dropout(0.2)(x)
    model = keras.Model(inputs, keras.layers.Dense(TAGS)(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3),
                  loss=keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
                  jit_compile=False)
    return model


class EpochClock(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.marks = []

    def on_epoch_end(self, epoch, logs=None):
        self.marks.append(time.perf_counter())


def main():
    keras.utils.set_random_seed(16)
    rng = np.random.default_rng(16)
    train = make_dataset(make_patches(rng, TRAIN), training=True)
    valid = make_dataset(make_patches(rng, VALIDATION), training=False)
    model = build_model()
    clock = EpochClock()
    with tempfile.TemporaryDirectory() as folder:
        best = keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.keras"),
                                               monitor="val_loss", save_best_only=True)
        stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=3)
        model.fit(train, validation_data=valid, epochs=EPOCHS, verbose=2,
                  callbacks=[best, stop, clock])
    seconds = clock.marks[-1] - clock.marks[0]
    samples = (len(clock.marks) - 1) * (TRAIN // BATCH) * BATCH
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
