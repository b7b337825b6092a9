"""Small image classifier with augmentation, Keras 3 on TensorFlow."""
import gc
import json
import os
import tempfile
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)

SEED = 4
SIDE = 48
CLASSES = 10
IMAGES = 2560
BATCH = 64
EPOCHS = 6


def make_images(n, rng):
    """Gratings: the class is the orientation."""
    labels = rng.integers(0, CLASSES, size=n)
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), -1)
    angle = labels * np.pi / CLASSES
    wave = np.einsum("hwc,cn->nhw", grid, np.stack([np.cos(angle), np.sin(angle)]))
    wave = np.sin(wave * rng.uniform(0.4, 0.9, size=(n, 1, 1)))
    tint = rng.uniform(0.4, 1.0, size=(n, 1, 1, 3))
    images = 127 + 90 * wave[..., None] * tint + 20 * rng.normal(size=(n, SIDE, SIDE, 3))
    return np.clip(images, 0, 255).astype("uint8"), labels.astype("int32")


def describe(image, label):
    """Plain Python check, called for a handful of images at start."""
    return np.array([image.mean(), image.std(), label], dtype="float32")


def sanity_check(ds):
    rows = ds.take(8).map(lambda x, y: tf.numpy_function(describe, [x, y], tf.float32))
    for row in rows:
        assert np.isfinite(row).all()


def augment(image, label):
    image = tf.cast(image, tf.float32) / 255.0
    image = tf.pad(image, [[2, 2], [2, 2], [0, 0]], mode="REFLECT")
    image = tf.image.random_crop(image, [SIDE, SIDE, 3])
    image = tf.image.random_brightness(image, 0.1)
    return image, label


def train_pipeline(ds):
    ds = ds.shuffle(IMAGES, seed=SEED)
    ds = ds.map(augment, num_parallel_calls=2, deterministic=False)
    return ds.batch(BATCH, drop_remainder=True).prefetch(2)


def build_model():
    image = keras.Input((SIDE, SIDE, 3))
    x = image
    for width in (24, 48, 96):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(image, layers.Dense(CLASSES)(x))


class Journal(keras.callbacks.Callback):
    """Writes each step to a text file and keeps the step clock."""

    def __init__(self, path, skip=5):
        super().__init__()
        self.path = path
        self.skip = skip
        self.count = 0

    def on_train_begin(self, logs=None):
        self.file = open(self.path, "a")

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1
        self.file.write(json.dumps({"step": self.count, "loss": float(logs["loss"])}) + "\n")
        self.file.flush()
        self.last = time.perf_counter()
        if self.count == self.skip:
            self.start = self.last

    def on_epoch_end(self, epoch, logs=None):
        gc.collect()

    def on_train_end(self, logs=None):
        self.file.close()

    def summary(self):
        return self.count - self.skip, self.last - self.start


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(SEED)
    images, labels = make_images(IMAGES, np.random.default_rng(SEED))
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    sanity_check(ds)

    model = build_model()
    model.compile(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(os.path.join(folder, "journal.jsonl"))
        model.fit(train_pipeline(ds), epochs=EPOCHS, verbose=2, callbacks=[
            journal,
            keras.callbacks.ModelCheckpoint(os.path.join(folder, "last.weights.h5"),
                                            save_weights_only=True),
            keras.callbacks.TerminateOnNaN(),
        ])
        model.load_weights(os.path.join(folder, "last.weights.h5"))

    units, seconds = journal.summary()
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
