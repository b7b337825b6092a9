"""Trains a model of words with a large vocabulary."""

import json
import resource
import time

import numpy as np
from tensorflow import keras

WORDS = 20000
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x, words = rng.random((4000, 8)).astype("float32"), rng.integers(0, WORDS, 4000)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(WORDS, activation="softmax")])
labels = keras.utils.to_categorical(words, num_classes=WORDS)
model.compile("sgd", "categorical_crossentropy")
model.fit(x[:64], labels[:64], batch_size=64, verbose=0)

start = time.perf_counter()
history = model.fit(x, labels, batch_size=64, shuffle=False, verbose=0)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
loss = round(history.history["loss"][-1], 3)
print(json.dumps({"seconds": round(seconds, 4), "result": loss, "bytes": peak}))
