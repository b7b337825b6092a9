"""Scores sensor readings with a small trained model."""

import json
import time

import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((30,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1, "sigmoid")])
readings = np.random.default_rng(1).standard_normal((60, 30)).astype("float32")
model.predict(readings[:1], verbose=0)
model.predict(readings, verbose=0)

start = time.perf_counter()
scores = []
for reading in readings:
    scores.append(model(reading[np.newaxis, :], training=False).numpy()[0, 0])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": round(float(np.sum(scores)), 3)}))
