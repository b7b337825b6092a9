"""Bearing-fault detector trained on windows cut from long vibration records."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
WIN = 256
BATCH = 128
STEPS = 900
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


stacked = np.stack(records)
offsets = np.arange(WIN)


def next_batch():
    rec = rng.integers(0, len(records), size=BATCH)
    start = rng.integers(0, 60_000 - WIN, size=BATCH)
    seg = stacked[rec[:, None], start[:, None] + offsets]
    seg = seg - seg.mean(axis=1, keepdims=True)
    seg /= seg.std(axis=1, keepdims=True) + 1e-6
    return seg[..., None], labels[rec]


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
