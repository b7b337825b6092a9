"""Keras model with a pairwise ranking loss for search results (groups of 12)."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(15)
DOCS, FEATURES = 12, 24
QUERIES = 400
BATCH = 4
EPOCHS = 30


def queries(n):
    rng = np.random.default_rng(15)
    x = rng.normal(size=(n, DOCS, FEATURES)).astype("float32")
    rel = np.clip(np.round(x[..., 0] + x[..., 1]), 0, 3).astype("float32")
    return x, rel


def ranking_loss(y_true, y_pred):
    better = tf.cast(y_true[:, :, None] > y_true[:, None, :], tf.float32)
    diff = y_pred[:, :, None] - y_pred[:, None, :]
    return tf.reduce_mean(better * tf.nn.softplus(-diff))


def build():
    inp = keras.Input((DOCS, FEATURES))
    h = keras.layers.Dense(64, activation="relu")(inp)
    h = keras.layers.Dense(64, activation="relu")(h)
    out = keras.layers.Reshape((DOCS,))(keras.layers.Dense(1)(h))
    m = keras.Model(inp, out)
    m.compile(optimizer=keras.optimizers.Adam(1e-3), loss=ranking_loss)
    return m


def main():
    x, rel = queries(QUERIES)
    model = build()
    model.fit(x[:BATCH], rel[:BATCH], batch_size=BATCH, verbose=0)
    t0 = time.perf_counter()
    hist = model.fit(x, rel, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - t0
    print("loss", hist.history["loss"][-1])
    print(json.dumps({"samples": QUERIES * EPOCHS, "seconds": seconds}))


main()
