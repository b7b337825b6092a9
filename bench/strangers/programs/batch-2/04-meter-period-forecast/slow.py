"""Backfill of the nightly smart-meter forecasts: find the dominant periods of each meter by autocorrelation
and forecast the next day from them. Replays several nights, writes one forecast file per night and shard."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

HISTORY = 5040          # 35 days of 10-minute readings
HORIZON = 144
TOP_LAGS = 4
METERS_PER_SHARD = 256
SHARDS = 8
NIGHTS = 16
BATCH = 64


def make_shard(rng, meters):
    length = HISTORY + (NIGHTS - 1) * HORIZON
    t = np.arange(length, dtype=np.float32)
    daily = rng.uniform(0.4, 1.6, (meters, 1)) * np.sin(2 * np.pi * t / 144 + rng.uniform(0, 6.28, (meters, 1)))
    weekly = rng.uniform(0.1, 0.8, (meters, 1)) * np.sin(2 * np.pi * t / 1008 + rng.uniform(0, 6.28, (meters, 1)))
    noise = rng.normal(0, 0.3, (meters, length))
    return (3.0 + daily + weekly + noise).astype(np.float32)


def write_shards(folder, count):
    rng = np.random.default_rng(11)
    paths = []
    for i in range(count):
        path = os.path.join(folder, f"meters-{i:03d}.npy")
        np.save(path, make_shard(rng, METERS_PER_SHARD))
        paths.append(path)
    return paths


@keras.saving.register_keras_serializable("meters")
class Autocorrelation(keras.layers.Layer):
    """Linear (not circular) autocorrelation by Wiener-Khinchin, normalised to lag 0."""

    def call(self, x):
        n = x.shape[-1]
        size = [2 * n - 1]
        spectrum = tf.signal.rfft(x, fft_length=size)
        power = spectrum * tf.math.conj(spectrum)
        corr = tf.signal.irfft(power, fft_length=size)[:, :n]
        return corr / (corr[:, :1] + 1e-6)

    def compute_output_shape(self, shape):
        return shape


@keras.saving.register_keras_serializable("meters")
class PeriodicForecast(keras.layers.Layer):
    """Weighted mean of the windows that lie one best lag back."""

    def __init__(self, horizon, top_lags, **kw):
        super().__init__(**kw)
        self.horizon = horizon
        self.top_lags = top_lags

    def call(self, inputs):
        x, corr = inputs
        n = x.shape[-1]
        candidates = corr[:, self.horizon:n // 2]
        weight, lag = tf.math.top_k(candidates, k=self.top_lags)
        start = n - (lag + self.horizon)
        index = start[:, :, None] + tf.range(self.horizon)[None, None, :]
        windows = tf.gather(x, index, axis=1, batch_dims=1)
        return tf.einsum("bk,bkh->bh", tf.nn.softmax(weight * 8.0), windows)

    def compute_output_shape(self, shapes):
        return (shapes[0][0], self.horizon)


def build_model():
    series = keras.Input((HISTORY,), name="load")
    mean = keras.ops.mean(series, axis=-1, keepdims=True)
    std = keras.ops.std(series, axis=-1, keepdims=True) + 1e-3
    x = (series - mean) / std
    corr = Autocorrelation(name="autocorrelation")(x)
    base = PeriodicForecast(HORIZON, TOP_LAGS, name="periodic")([x, corr])
    recent = x[:, -2 * HORIZON:]
    hidden = keras.layers.Dense(128, activation="relu")(keras.layers.Concatenate()([recent, base]))
    delta = keras.layers.Dense(HORIZON, kernel_initializer=keras.initializers.RandomNormal(0, 0.01))(hidden)
    return keras.Model(series, (base + delta) * std + mean)


def make_server(model):
    @tf.function(input_signature=[tf.TensorSpec([None, HISTORY], tf.float32)])
    def serve(batch):
        return model(batch, training=False)

    return serve


def score_shard(serve, path, night, out_dir):
    begin = night * HORIZON
    readings = np.load(path, mmap_mode="r")[:, begin:begin + HISTORY]
    parts = [serve(tf.constant(readings[i:i + BATCH])).numpy() for i in range(0, len(readings), BATCH)]
    forecast = np.maximum(np.concatenate(parts), 0.0)
    np.save(os.path.join(out_dir, f"night{night:02d}-{os.path.basename(path)}"), forecast)
    return len(readings), float(forecast.mean())


def main():
    keras.utils.set_random_seed(3)
    with tempfile.TemporaryDirectory() as work:
        out_dir = os.path.join(work, "forecasts")
        os.makedirs(out_dir)
        paths = write_shards(work, SHARDS)
        serve = make_server(build_model())
        score_shard(serve, paths[0], 0, out_dir)

        done, level = 0, []
        begin = time.perf_counter()
        for night in range(NIGHTS):
            for path in paths:
                count, mean = score_shard(serve, path, night, out_dir)
                done += count
                level.append(mean)
        seconds = time.perf_counter() - begin
    print(f"{len(level)} shard forecasts, mean forecast {np.mean(level):.4f}")
    print(json.dumps({"samples": done, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
