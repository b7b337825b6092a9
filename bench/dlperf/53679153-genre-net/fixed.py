"""Music-genre classifier on mel spectrograms."""
import json
import time

import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(36)
FRAMES, MELS = 320, 96
CLIPS, BATCH = 40, 10


def spectrograms():
    rng = np.random.default_rng(36)
    x = rng.random((CLIPS, FRAMES, MELS), dtype="float32")
    y = rng.integers(0, 10, size=CLIPS)
    for clip, c in zip(x, y):
        clip[:, c * 9:c * 9 + 9] += 0.5
    return x, y


def build():
    model = keras.Sequential()
    model.add(layers.Input((FRAMES, MELS)))
    model.add(layers.AveragePooling1D(8))
    model.add(layers.Flatten())
    model.add(layers.Dense(256, activation="relu"))
    model.add(layers.Dropout(0.4))
    model.add(layers.Dense(128, activation="relu"))
    model.add(layers.Dense(10, activation="softmax"))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    x, y = spectrograms()
    model = build()
    print("parameters", model.count_params())
    model.fit(x[:BATCH], y[:BATCH], batch_size=BATCH, verbose=0)
    t0 = time.perf_counter()
    hist = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
    seconds = time.perf_counter() - t0
    print("loss", hist.history["loss"][-1])
    print(json.dumps({"samples": CLIPS, "seconds": seconds}))


main()
