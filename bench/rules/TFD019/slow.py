"""One step of training for each row."""

import json
import time

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.random((512, 16)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.layers.Input([16]), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.train_on_batch(x[:1], y[:1])
model.train_on_batch(x[:32], y[:32])
rows = tf.data.Dataset.from_tensor_slices((x, y))

count = 0
begin = time.perf_counter()
for a, b in rows.as_numpy_iterator():
    model.train_on_batch(a[None], b[None])
    count += 1
print(json.dumps({"seconds": time.perf_counter() - begin, "result": count}))
