"""Denoise microscopy tiles with a trained network: fit works, then the archive is denoised."""
import json
import time

import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(18)
SIDE = 64
ARCHIVE = 640


def tiles(n, seed):
    rng = np.random.default_rng(seed)
    clean = np.repeat(np.repeat(rng.random((n, 8, 8, 1), dtype="float32"), 8, 1), 8, 2)
    return clean + rng.normal(0, 0.1, clean.shape).astype("float32"), clean


def build():
    inp = keras.Input((SIDE, SIDE, 1))
    h = layers.Conv2D(32, 3, padding="same", activation="relu")(inp)
    h = layers.Conv2D(32, 3, padding="same", activation="relu")(h)
    h = layers.Conv2D(32, 3, padding="same", activation="relu")(h)
    out = layers.Conv2D(1, 3, padding="same")(h)
    m = keras.Model(inp, out)
    m.compile("adam", "mse")
    return m


def main():
    noisy, clean = tiles(64, 1)
    model = build()
    model.fit(noisy, clean, batch_size=16, epochs=1, verbose=0)

    archive, _ = tiles(ARCHIVE, 2)
    model.predict(archive[:16], batch_size=16, verbose=0)
    t0 = time.perf_counter()
    restored = model.predict(archive, batch_size=16, verbose=0)
    seconds = time.perf_counter() - t0
    print("mean", float(restored.mean()))
    print(json.dumps({"samples": ARCHIVE, "seconds": seconds}))


main()
