"""Leaf disease classifier (tf.keras 2.x), small-batch fine tuning with an averaged copy of the weights for validation."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

SIZE = 48
CLASSES = 8
BATCH = 8
N_TRAIN = 640
N_VAL = 160
EPOCHS = 2


def make_leaves(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) / SIZE
    x = np.empty((n, SIZE, SIZE, 3), np.uint8)
    for i in range(n):
        freq = 2 + y[i]
        spots = np.sin(freq * 2 * np.pi * (xx + rng.uniform())) * np.sin(freq * 2 * np.pi * (yy + rng.uniform()))
        leaf = np.stack([60 + 50 * spots, 130 + 20 * spots, 50 + 0 * spots], -1)
        x[i] = np.clip(leaf + rng.normal(0, 25, leaf.shape), 0, 255)
    return x, y.astype(np.int32)


def to_dataset(x, y, training):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    if training:
        ds = ds.shuffle(len(x))
    ds = ds.batch(BATCH if training else 80, drop_remainder=training)

    def prepare(images, labels):
        images = tf.cast(images, tf.float32) / 255.0
        if training:
            images = tf.image.random_flip_left_right(images)
        return images, labels

    return ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def build_model():
    inp = tf.keras.Input((SIZE, SIZE, 3))
    x = inp
    for f in (16, 32, 64):
        x = layers.Conv2D(f, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(1536, activation="relu")(x)
    x = layers.Dropout(0.3)(x)
    return tf.keras.Model(inp, layers.Dense(CLASSES)(x))


class WeightAverager(tf.keras.callbacks.Callback):
    """Keeps a shadow model with averaged weights and validates that one."""

    def __init__(self, val_ds, decay=0.98):
        super().__init__()
        self.val_ds = val_ds
        self.decay = decay
        self.shadow = None
        self.history = []

    def on_train_begin(self, logs=None):
        if self.shadow is None:
            self.shadow = tf.keras.models.clone_model(self.model)
            self.shadow.set_weights(self.model.get_weights())
            self.shadow.compile(loss=self.model.loss, metrics=["accuracy"])

    def on_train_batch_end(self, batch, logs=None):
        new = self.model.get_weights()
        old = self.shadow.get_weights()
        self.shadow.set_weights([self.decay * o + (1.0 - self.decay) * n for o, n in zip(old, new)])

    def on_epoch_end(self, epoch, logs=None):
        loss, acc = self.shadow.evaluate(self.val_ds, verbose=0)
        self.history.append(acc)
        logs["ema_val_loss"] = loss
        logs["ema_val_accuracy"] = acc


def main():
    tf.keras.utils.set_random_seed(11)
    train = to_dataset(*make_leaves(N_TRAIN, 0), training=True)
    val = to_dataset(*make_leaves(N_VAL, 1), training=False)
    model = build_model()
    model.compile(
        optimizer=tf.keras.optimizers.SGD(0.02, momentum=0.9),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    averager = WeightAverager(val)
    model.fit(train.take(20), epochs=1, callbacks=[averager], verbose=0)

    start = time.perf_counter()
    model.fit(train, epochs=EPOCHS, callbacks=[averager, tf.keras.callbacks.TerminateOnNaN()], verbose=0)
    seconds = time.perf_counter() - start

    print("averaged val accuracy per epoch:", [round(a, 3) for a in averager.history])
    print(json.dumps({"samples": EPOCHS * N_TRAIN, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
