"""Next-day realised volatility of a basket of stocks from 96 days of daily features."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

N_STOCKS = 60
N_DAYS = 900
LOOKBACK = 96
PATCH = 8
WIDTH = 160
DEPTH = 3
BATCH = 128
EPOCHS = 4
STEPS = 30
VAL_DAYS = 40


def simulate_market(seed):
    rng = np.random.default_rng(seed)
    logvol = np.zeros((N_STOCKS, N_DAYS))
    shock = rng.normal(0, 0.2, (N_STOCKS, N_DAYS)) + rng.normal(0, 0.2, N_DAYS)
    for d in range(1, N_DAYS):
        logvol[:, d] = 0.96 * logvol[:, d - 1] + shock[:, d]
    ret = 0.01 * np.exp(0.5 * logvol) * rng.standard_t(5, (N_STOCKS, N_DAYS))
    volume = np.exp(0.5 * logvol + rng.normal(0, 0.3, logvol.shape))
    return ret, volume, logvol


def moving_average(x, span):
    c = np.cumsum(np.pad(x, ((0, 0), (span, 0))), axis=1)
    out = (c[:, span:] - c[:, :-span]) / span
    out[:, :span] = out[:, span:span + 1]
    return out


def features(ret, volume):
    mag = np.log(np.abs(ret) + 1e-4)
    lv = np.log(volume)
    market = np.broadcast_to(mag.mean(0), mag.shape)
    cols = [ret / 0.01, mag, lv, market, moving_average(mag, 5), moving_average(mag, 22),
            lv - moving_average(lv, 22), np.sign(ret)]
    x = np.stack(cols, -1)
    fit = x[:, :N_DAYS - VAL_DAYS]
    return ((x - fit.mean((0, 1))) / fit.std((0, 1))).astype(np.float32)


def window_index(first_day, last_day):
    days = np.arange(first_day, last_day)
    stock, day = np.meshgrid(np.arange(N_STOCKS), days, indexing="ij")
    return np.stack([stock.ravel(), day.ravel()], -1).astype(np.int32)


def windows(x, target, pairs, shuffle):
    x, target = tf.constant(x), tf.constant(target.astype(np.float32))
    span = tf.range(-LOOKBACK, 0)

    def cut(batch):
        stock, day = batch[:, 0], batch[:, 1]
        where = day[:, None] + span[None]
        rows = tf.stack([tf.broadcast_to(stock[:, None], tf.shape(where)), where], -1)
        return tf.gather_nd(x, rows), tf.gather_nd(target, batch)

    ds = tf.data.Dataset.from_tensor_slices(pairs)
    if shuffle:
        ds = ds.shuffle(len(pairs), seed=1).repeat()
    ds = ds.batch(BATCH, drop_remainder=True)
    return ds.map(cut, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def block(x):
    h = layers.LayerNormalization(epsilon=1e-5)(x)
    x = x + layers.MultiHeadAttention(4, WIDTH // 4)(h, h)
    h = layers.LayerNormalization(epsilon=1e-5)(x)
    h = layers.Dense(4 * WIDTH, activation="relu")(h)
    return x + layers.Dense(WIDTH)(h)


def patch_model(n_features):
    inp = keras.Input((LOOKBACK, n_features))
    x = layers.Reshape((LOOKBACK // PATCH, PATCH * n_features))(inp)
    x = layers.Dense(WIDTH)(x)
    place = layers.Embedding(LOOKBACK // PATCH, WIDTH)(np.arange(LOOKBACK // PATCH))
    x = x + place
    for _ in range(DEPTH):
        x = block(x)
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    x = layers.Flatten()(x)
    return keras.Model(inp, layers.Dense(1)(layers.Dense(64, activation="relu")(x)))


class Stopwatch(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.laps = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.laps.append(time.perf_counter() - self.t0)
        print(f"epoch {epoch}: loss {logs['loss']:.4f} val mae {logs['val_mae']:.4f}")


def main():
    keras.utils.set_random_seed(17)
    ret, volume, logvol = simulate_market(0)
    x = features(ret, volume)
    split = N_DAYS - VAL_DAYS
    train = windows(x, logvol, window_index(LOOKBACK, split), shuffle=True)
    val = windows(x, logvol, window_index(split, split + 6), shuffle=False)
    model = patch_model(x.shape[-1])
    model.compile(keras.optimizers.AdamW(5e-4, weight_decay=1e-3), loss="mse", metrics=["mae"])
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        model.fit(
            train, steps_per_epoch=STEPS, epochs=EPOCHS, validation_data=val, verbose=0,
            callbacks=[
                keras.callbacks.ReduceLROnPlateau(patience=2, factor=0.5),
                keras.callbacks.EarlyStopping(patience=5),
                keras.callbacks.CSVLogger(os.path.join(folder, "log.csv")),
                keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"),
                                                save_best_only=True, save_weights_only=True),
                watch,
            ])
    laps = watch.laps[1:]
    print(json.dumps({"samples": STEPS * BATCH * len(laps), "seconds": round(sum(laps), 3)}))


if __name__ == "__main__":
    main()
