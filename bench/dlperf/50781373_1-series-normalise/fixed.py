"""Next-value model on household power readings, windows prepared in tf.data."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(1)
N, LAGS = 40_000, 24
BATCH = 256
EPOCHS = 2


def readings():
    rng = np.random.default_rng(1)
    base = np.cumsum(rng.normal(0, 0.2, size=N + LAGS)).astype("float32")
    view = np.lib.stride_tricks.sliding_window_view(base, LAGS + 1)
    return np.array(view[:N])


def prepare(window):
    past, target = window[..., :-1], window[..., -1:]
    mean = tf.reduce_mean(past, axis=-1, keepdims=True)
    std = tf.math.reduce_std(past, axis=-1, keepdims=True) + 1e-3
    diff = past[..., 1:] - past[..., :-1]
    x = tf.concat([(past - mean) / std, diff], axis=-1)
    return x, (target - mean) / std


def make_dataset(windows):
    ds = tf.data.Dataset.from_tensor_slices(windows)
    ds = ds.shuffle(4096, seed=1)
    ds = ds.batch(BATCH, drop_remainder=True)
    ds = ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((2 * LAGS - 1,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    m.compile("adam", "mse")
    return m


def main():
    ds = make_dataset(readings())
    model = build()
    model.fit(ds.take(5), verbose=0)
    t0 = time.perf_counter()
    hist = model.fit(ds, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - t0
    print("loss", hist.history["loss"])
    print(json.dumps({"samples": EPOCHS * (N // BATCH) * BATCH, "seconds": seconds}))


main()
