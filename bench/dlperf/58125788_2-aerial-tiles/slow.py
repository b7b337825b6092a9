"""Land-cover segmentation-by-tile: 192x192 aerial tiles."""
import json
import time

import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(9)
SIDE = 192
BATCH = 8
STEPS = 2


def tiles(n):
    rng = np.random.default_rng(9)
    x = rng.random((n, SIDE, SIDE, 3), dtype="float32")
    y = rng.integers(0, 6, size=n)
    for i, c in enumerate(y):
        x[i, ::c + 2, :, 0] += 0.4
    return x, y


def build():
    inp = keras.Input((SIDE, SIDE, 3))
    h = layers.Conv2D(128, 3, padding="same", activation="relu")(inp)
    h = layers.Conv2D(128, 3, padding="same", activation="relu")(h)
    h = layers.MaxPooling2D()(h)
    h = layers.Conv2D(256, 3, padding="same", activation="relu")(h)
    h = layers.MaxPooling2D()(h)
    h = layers.Conv2D(256, 3, padding="same", activation="relu")(h)
    h = layers.GlobalAveragePooling2D()(h)
    out = layers.Dense(6, activation="softmax")(h)
    m = keras.Model(inp, out)
    m.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    return m


def main():
    x, y = tiles(BATCH * STEPS)
    model = build()
    model.fit(x[:BATCH], y[:BATCH], batch_size=BATCH, verbose=0)
    t0 = time.perf_counter()
    model.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
    seconds = time.perf_counter() - t0
    print(json.dumps({"samples": BATCH * STEPS, "seconds": seconds}))


main()
