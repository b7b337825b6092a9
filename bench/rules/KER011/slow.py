"""Trains three epochs on pictures."""

import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x, y = rng.random((320, 16, 16, 1)).astype("float32"), rng.integers(0, 5, 320)
model = keras.Sequential([keras.layers.Input((16, 16, 1)), keras.layers.Flatten(), keras.layers.Dense(5)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x[:32], y[:32], verbose=0)
pictures = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(320, seed=1).batch(32).repeat()

start = time.perf_counter()
model.fit(pictures, steps_per_epoch=len(x), epochs=3, verbose=0)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": round(seconds, 4), "result": model.count_params()}))
