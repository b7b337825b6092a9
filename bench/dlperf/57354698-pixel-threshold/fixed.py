"""Clean depth frames from a range camera before a small regression net is trained on them."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(32)
H, W = 120, 160
FRAMES = 1600
NEAR, FAR = 0.4, 4.0


def capture(n):
    rng = np.random.default_rng(32)
    base = rng.random((n, 1, 1)).astype("float32") * 3 + 0.5
    frames = base + rng.normal(0, 0.2, size=(n, H, W)).astype("float32")
    frames[rng.random((n, H, W)) < 0.08] = 0.0
    frames[rng.random((n, H, W)) < 0.05] = 9.9
    return frames, base[:, 0, 0]


def clean(frame):
    good = (frame >= NEAR) & (frame <= FAR)
    out = np.where(good, 1.0 / np.where(good, frame, 1.0), 0.0).astype("float32")
    return out * (H * W / max(good.sum(), 1))


def build():
    m = keras.Sequential(
        [
            keras.layers.Input((H, W, 1)),
            keras.layers.AveragePooling2D(4),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    m.compile("adam", "mse")
    return m


def main():
    frames, distance = capture(FRAMES)
    model = build()
    model.train_on_batch(np.zeros((8, H, W, 1), "float32"), np.zeros((8, 1), "float32"))
    t0 = time.perf_counter()
    x = np.stack([clean(f) for f in frames])[..., None]
    hist = model.fit(x, distance, batch_size=8, epochs=1, verbose=0)
    seconds = time.perf_counter() - t0
    print("loss", hist.history["loss"][-1])
    print(json.dumps({"samples": FRAMES, "seconds": seconds}))


main()
