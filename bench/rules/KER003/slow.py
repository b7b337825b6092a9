"""Scores batches with a model from a file."""

import json
import os
import tempfile
import time

import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(1)
path = os.path.join(tempfile.mkdtemp(), "model.keras")
keras.Sequential([keras.layers.Input((30,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)]).save(path)
batches = np.random.default_rng(1).standard_normal((20, 32, 30)).astype("float32")
keras.models.load_model(path).predict(batches[0], verbose=0)

def score(batch):
    model = keras.models.load_model(path)
    return float(np.sum(model.predict_on_batch(batch)))


start = time.perf_counter()
total = 0.0
for batch in batches:
    total += score(batch)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": round(total, 2)}))
