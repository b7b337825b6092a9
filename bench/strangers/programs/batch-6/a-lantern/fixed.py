"""Sensor-signal classifier with a retrieval probe on the embedding layer during training."""
import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

LENGTH = 256
CHANNELS = 6
CLASSES = 20
BATCH = 16
BLOCKS = 14


def make_signals(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    t = np.linspace(0, 1, LENGTH, dtype=np.float32)
    freq = (2 + y)[:, None, None] * (1 + 0.05 * np.arange(CHANNELS))[None, None, :]
    phase = rng.random((n, 1, CHANNELS)) * 6.28
    x = np.sin(2 * np.pi * freq * t[None, :, None] + phase)
    x = x + rng.normal(scale=0.8, size=x.shape)
    return x.astype(np.float32), y.astype(np.int32)


def residual(x, width, stride):
    skip = x
    x = layers.Conv1D(width, 5, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    x = layers.Conv1D(width, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    if stride != 1 or skip.shape[-1] != width:
        skip = layers.Conv1D(width, 1, strides=stride, padding="same")(skip)
    return layers.Activation("relu")(layers.Add()([x, skip]))


def build_model():
    inp = keras.Input((LENGTH, CHANNELS))
    x = layers.Conv1D(24, 7, strides=2, padding="same", activation="relu")(inp)
    for i in range(BLOCKS):
        x = residual(x, 24 if i < 5 else 40 if i < 10 else 64, 2 if i in (5, 10) else 1)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(64, name="embedding")(x)
    x = layers.UnitNormalization()(x)
    out = layers.Dense(CLASSES, name="head")(x)
    return keras.Model(inp, out)


class RetrievalProbe(keras.callbacks.Callback):
    """Recall@1 of a small query set against a small gallery."""

    def __init__(self, queries, gallery, every):
        super().__init__()
        self.queries, self.gallery, self.every = queries, gallery, every
        self.seen = 0
        self.history = []

    def on_train_begin(self, logs=None):
        self.encoder = keras.Model(self.model.inputs, self.model.get_layer("embedding").output)

    def embed(self, x):
        z = self.encoder.predict(x, batch_size=64, verbose=0)
        return z / np.linalg.norm(z, axis=1, keepdims=True)

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen % self.every:
            return
        (qx, qy), (gx, gy) = self.queries, self.gallery
        z = self.embed(np.concatenate([qx, gx]))
        sim = z[:len(qx)] @ z[len(qx):].T
        hit = gy[np.argmax(sim, axis=1)] == qy
        self.history.append(float(hit.mean()))


class StepClock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.times = []
        self.last = None

    def on_epoch_begin(self, epoch, logs=None):
        self.last = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        self.times.append(now - self.last)
        self.last = now


def warmup_cosine(total):
    return keras.optimizers.schedules.CosineDecay(
        1e-4, total, warmup_target=3e-3, warmup_steps=total // 10)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    args = ap.parse_args()
    t0 = time.perf_counter()
    keras.utils.set_random_seed(21)
    x, y = make_signals(BATCH * 32, seed=1)
    qx, qy = make_signals(64, seed=2)
    gx, gy = make_signals(192, seed=3)
    vx, vy = make_signals(192, seed=4)

    ds = (tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).repeat()
          .batch(BATCH, drop_remainder=True).prefetch(2))
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.AdamW(warmup_cosine(32 * args.epochs), clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"])
    probe = RetrievalProbe((qx, qy), (gx, gy), every=4)
    clock = StepClock()
    model.fit(ds, steps_per_epoch=32, epochs=args.epochs, verbose=2, validation_data=(vx, vy),
              callbacks=[probe, clock])
    print("recall@1 " + " ".join(f"{v:.2f}" for v in probe.history))
    t = clock.times
    print(f"steps={len(t)} mean_step={np.mean(t):.4f} median_step={np.median(t):.4f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
