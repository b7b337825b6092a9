"""Bearing-fault detector trained on windows cut from long vibration records."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
WIN = 256
BATCH = 128
STEPS = 90
WARMUP = 4

rng = np.random.default_rng(0)
records = [rng.normal(size=60_000).astype("float32") for _ in range(12)]
labels = rng.integers(0, 4, size=12)
for r, c in zip(records, labels):
    r += np.sin(np.arange(r.size) * (0.05 + 0.03 * c)).astype("float32")

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((WIN, 1)),
        tf.keras.layers.Conv1D(16, 9, strides=4, activation="relu"),
        tf.keras.layers.Conv1D(32, 5, strides=2, activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(4),
    ]
)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
opt = tf.keras.optimizers.Adam(1e-3)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def next_batch():
    xs = np.zeros((BATCH, WIN, 1), "float32")
    ys = np.zeros((BATCH,), "int64")
    rec = rng.integers(0, len(records), size=BATCH)
    start = rng.integers(0, 60_000 - WIN, size=BATCH)
    for b in range(BATCH):
        seg = records[rec[b]][start[b]:start[b] + WIN]
        mean = 0.0
        for t in range(WIN):
            mean += seg[t] / WIN
        var = 0.0
        for t in range(WIN):
            var += (seg[t] - mean) ** 2 / WIN
        for t in range(WIN):
            xs[b, t, 0] = (seg[t] - mean) / (var ** 0.5 + 1e-6)
        ys[b] = labels[rec[b]]
    return xs, ys


loss = 0.0
for step in range(WARMUP + STEPS):
    if step == WARMUP:
        t0 = time.perf_counter()
    xb, yb = next_batch()
    loss = train_step(tf.constant(xb), tf.constant(yb))
loss = float(loss)
seconds = time.perf_counter() - t0
print("loss", loss)
print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))
