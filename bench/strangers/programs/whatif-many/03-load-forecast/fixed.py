"""Day-ahead electricity load forecast: dilated temporal convolutions over one week of quarter-hour readings."""
import json
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

WINDOW = 336
HORIZON = 96
FEATURES = 8
BATCH = 32
WARMUP = 10
STEPS = 130
QUANTILES = (0.1, 0.5, 0.9)


def make_series(n=20000, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    load = 50 + 12 * np.sin(2 * np.pi * t / 96) + 6 * np.sin(2 * np.pi * t / 672)
    temp = 10 + 8 * np.sin(2 * np.pi * t / (96 * 365)) + rng.normal(0, 1, n).cumsum() * 0.01
    cols = [load + 0.5 * temp + rng.normal(0, 1.5, n), temp]
    cols += [np.sin(2 * np.pi * t / p) for p in (96, 672, 2880)]
    cols += [np.cos(2 * np.pi * t / p) for p in (96, 672, 2880)]
    x = np.stack(cols, 1)
    return ((x - x.mean(0)) / x.std(0)).astype(keras.config.floatx())


class Windows:
    """Random windows of the series as (history, target) batches."""

    def __init__(self, series, batch, seed=1):
        self.series = series
        self.batch = batch
        self.rng = np.random.default_rng(seed)
        self.last = len(series) - WINDOW - HORIZON

    def __call__(self):
        offsets = np.arange(WINDOW)
        ahead = np.arange(WINDOW, WINDOW + HORIZON)
        while True:
            start = self.rng.integers(0, self.last, self.batch)[:, None]
            yield self.series[start + offsets], self.series[start + ahead, 0]


def make_dataset(series):
    dtype = tf.as_dtype(keras.config.floatx())
    spec = (
        tf.TensorSpec((BATCH, WINDOW, FEATURES), dtype),
        tf.TensorSpec((BATCH, HORIZON), dtype),
    )
    return tf.data.Dataset.from_generator(Windows(series, BATCH), output_signature=spec).prefetch(4)


def residual(x, filters, dilation):
    h = layers.Conv1D(filters, 3, padding="causal", dilation_rate=dilation, activation="gelu")(x)
    h = layers.Conv1D(filters, 1)(h)
    h = layers.LayerNormalization()(h)
    return layers.Add()([x, h])


def build_model(filters=40):
    inp = keras.Input((WINDOW, FEATURES))
    x = layers.Conv1D(filters, 1)(inp)
    for dilation in (1, 2, 4, 8):
        x = residual(x, filters, dilation)
    x = layers.Lambda(lambda t: t[:, -HORIZON:, :])(x)
    out = layers.Conv1D(len(QUANTILES), 1)(x)
    return keras.Model(inp, out)


def pinball(target, pred):
    q = tf.constant(QUANTILES, pred.dtype)
    diff = target[..., None] - pred
    return tf.reduce_mean(tf.maximum(q * diff, (q - 1.0) * diff))


def make_step(model, optimizer):
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = pinball(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return step


def main():
    keras.utils.set_random_seed(0)
    batches = iter(make_dataset(make_series()))
    model = build_model()
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    step = make_step(model, optimizer)

    for _ in range(WARMUP):
        loss = step(*next(batches))
    print("loss after warm-up %.4f" % float(loss))

    start = time.perf_counter()
    for i in range(STEPS):
        loss = step(*next(batches))
        if (i + 1) % 50 == 0:
            print("step %d  pinball %.4f" % (i + 1, float(loss)))
    final = float(loss)
    seconds = time.perf_counter() - start
    print("pinball at the end %.4f" % final)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
