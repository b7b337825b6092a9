"""Spectrogram tagger: the whole feature bank is prepared first and then fitted."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(3)
N, T, F = 2400, 200, 256
EPOCHS = 1


def feature_bank():
    rng = np.random.default_rng(3)
    bank = np.empty((N, T, F), "float32")
    tags = rng.integers(0, 5, size=N)
    for i in range(N):
        bank[i] = rng.standard_normal((T, F), dtype="float32")
        bank[i, :, tags[i] * 20:(tags[i] + 1) * 20] += 0.5
    return bank, tags


def build():
    inp = keras.Input((T, F))
    h = keras.layers.Conv1D(16, 5, strides=4, activation="relu")(inp)
    h = keras.layers.GlobalMaxPooling1D()(h)
    out = keras.layers.Dense(5, activation="softmax")(h)
    m = keras.Model(inp, out)
    m.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return m


def main():
    x, y = feature_bank()
    model = build()
    model.train_on_batch(x[:32], y[:32])

    def batches():
        order = np.random.default_rng(0).permutation(N)
        for i in range(0, N, 32):
            yield x[order[i:i + 32]], y[order[i:i + 32]]

    signature = (tf.TensorSpec((None, T, F), tf.float32), tf.TensorSpec((None,), tf.int64))
    ds = tf.data.Dataset.from_generator(batches, output_signature=signature)
    t0 = time.perf_counter()
    hist = model.fit(ds, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - t0
    print("accuracy", hist.history["accuracy"][-1])
    print(json.dumps({"samples": N * EPOCHS, "seconds": seconds}))


main()
