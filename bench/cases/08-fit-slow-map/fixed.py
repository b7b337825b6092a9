"""Bearing-fault classifier on compressed vibration records, trained with fit."""
import json
import time
import zlib

import numpy as np
import tensorflow as tf
from tensorflow import keras

LENGTH = 2048


def record(rng, fault):
    t = np.arange(LENGTH)
    wave = np.sin(t / 9) + rng.normal(0, 0.4, LENGTH)
    if fault:
        wave[::173] += 3
    return zlib.compress((wave * 4000).astype("<i2").tobytes(), 1)


def store(count, seed=0):
    rng = np.random.default_rng(seed)
    faults = rng.integers(0, 2, count)
    return [record(rng, f) for f in faults], faults.astype("float32")


def load(blobs, labels):
    """Unpacks a batch of records and returns their rectified, normalised, decimated envelopes."""
    raw = tf.io.decode_compressed(blobs, "ZLIB")
    wave = tf.cast(tf.io.decode_raw(raw, tf.int16, fixed_length=None), tf.float32) / 4000
    wave = tf.abs(wave - tf.reduce_mean(wave, 1, keepdims=True))
    smooth = tf.reduce_max(tf.reshape(wave, (-1, LENGTH // 16, 16)), 2)
    mean, variance = tf.nn.moments(smooth, [1], keepdims=True)
    return (smooth - mean) / (tf.sqrt(variance) + 1e-6), labels


blobs, labels = store(4000)
train = tf.data.Dataset.from_tensor_slices((blobs, labels))
train = train.shuffle(4000).batch(50).map(load, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((LENGTH // 16,))
h = keras.layers.Reshape((LENGTH // 16, 1))(inputs)
h = keras.layers.Conv1D(16, 5, activation="relu")(h)
h = keras.layers.MaxPooling1D(4)(h)
h = keras.layers.Flatten()(h)
h = keras.layers.Dense(64, activation="relu")(h)
model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(h))
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])

model.fit(train.take(2), verbose=0)
EPOCHS = 24
start = time.perf_counter()
model.fit(train, epochs=EPOCHS, verbose=2)
seconds = time.perf_counter() - start
print(json.dumps({"samples": EPOCHS * len(labels), "seconds": round(seconds, 3)}))
