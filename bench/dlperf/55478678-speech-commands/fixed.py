"""Speech-command CNN fed from a tf.data pipeline."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(4)
N = 640
FRAMES, BANDS = 98, 40
EPOCHS = 1


def clips():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((N, FRAMES, BANDS, 1), dtype="float32")
    y = rng.integers(0, 12, size=N)
    for i, c in enumerate(y):
        x[i, :, c * 3:c * 3 + 3] += 0.7
    return x, y


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((FRAMES, BANDS, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(48, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(12, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return m


def pipeline(x, y):
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(N).batch(32)
    return ds.prefetch(tf.data.AUTOTUNE)


def main():
    x, y = clips()
    model = build()
    model.train_on_batch(x[:32], y[:32])
    ds = pipeline(x, y)
    t0 = time.perf_counter()
    hist = model.fit(ds, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - t0
    print("loss", hist.history["loss"][-1])
    print(json.dumps({"samples": N * EPOCHS, "seconds": seconds}))


main()
