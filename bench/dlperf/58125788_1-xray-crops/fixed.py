"""Binary classifier on 256x256 X-ray crops."""
import json
import time

import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(6)
SIDE = 256
BATCH = 8
N = 48


def crops():
    rng = np.random.default_rng(6)
    x = rng.random((N, SIDE, SIDE, 1), dtype="float32")
    y = rng.integers(0, 2, size=N)
    x[y == 1, 100:140, 100:140] *= 0.5
    return x, y.astype("float32")


def build():
    model = keras.Sequential()
    model.add(layers.Input((SIDE, SIDE, 1)))
    model.add(layers.Conv2D(16, 3, padding="same", activation="relu"))
    model.add(layers.MaxPooling2D())
    model.add(layers.Conv2D(32, 3, padding="same", activation="relu"))
    model.add(layers.MaxPooling2D())
    model.add(layers.Conv2D(32, 3, padding="same", activation="relu"))
    model.add(layers.MaxPooling2D())
    model.add(layers.Conv2D(32, 3, padding="same", activation="relu"))
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(64, activation="relu"))
    model.add(layers.Dense(1, activation="sigmoid"))
    model.compile(keras.optimizers.Adam(1e-4), "binary_crossentropy", metrics=["accuracy"])
    return model


x, y = crops()
model = build()
print("parameters", model.count_params())
model.fit(x[:BATCH], y[:BATCH], batch_size=BATCH, verbose=0)

t0 = time.perf_counter()
model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
seconds = time.perf_counter() - t0
print(json.dumps({"samples": N, "seconds": seconds}))
