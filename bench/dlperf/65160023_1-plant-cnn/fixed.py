"""Plant-disease classifier: small CNN over 96x96 leaf photographs."""
import json
import time

import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(11)
IMG = 96
CLASSES = 8
BATCH = 16
N_TRAIN = 64
EPOCHS = 2


def make_leaves(n):
    rng = np.random.default_rng(3)
    y = rng.integers(0, CLASSES, size=n)
    x = rng.normal(0.4, 0.15, size=(n, IMG, IMG, 3)).astype("float32")
    yy, xx = np.mgrid[0:IMG, 0:IMG]
    for i, c in enumerate(y):
        r = 6 + 4 * c
        blob = ((yy - IMG // 2) ** 2 + (xx - IMG // 2) ** 2) < r * r
        x[i, blob, 1] += 0.35
    return np.clip(x, 0, 1), y


def build_model():
    model = keras.Sequential(
        [
            layers.Input((IMG, IMG, 3)),
            layers.Conv2D(32, (3, 3), padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, (3, 3), padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, (3, 3), padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.3),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main():
    x, y = make_leaves(N_TRAIN)
    model = build_model()
    model.summary()

    model.fit(x[:BATCH], y[:BATCH], batch_size=BATCH, epochs=1, verbose=0)

    t0 = time.perf_counter()
    hist = model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - t0
    print("final loss", hist.history["loss"][-1])
    print(json.dumps({"samples": N_TRAIN * EPOCHS, "seconds": seconds}))


if __name__ == "__main__":
    main()
