"""Forecast hourly demand with a small dilated convolution network in Keras."""
import argparse
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
T0 = time.perf_counter()

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

PAST, AHEAD, FEATURES = 168, 24, 8


def make_series(hours, seed=6):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)[:, None]
    phase = rng.uniform(0, 2 * np.pi, (1, FEATURES))
    daily = np.sin(2 * np.pi * t / 24 + phase)
    weekly = 0.5 * np.cos(2 * np.pi * t / 168 + 2 * phase)
    walk = np.cumsum(rng.normal(0, 0.02, (hours, FEATURES)), 0)
    return (daily + weekly + walk + rng.normal(0, 0.1, (hours, FEATURES))).astype(np.float32)


def windows(series, batch, shuffle):
    data = tf.constant(series)
    starts = tf.data.Dataset.range(len(series) - PAST - AHEAD)
    if shuffle:
        starts = starts.shuffle(len(series), seed=1, reshuffle_each_iteration=True)

    def cut(rows):
        index = rows[:, None] + tf.range(PAST + AHEAD, dtype=tf.int64)[None]
        block = tf.gather(data, index)
        return block[:, :PAST], block[:, PAST:, 0]

    return starts.batch(batch, drop_remainder=True).map(cut, num_parallel_calls=1).prefetch(1)


class Residual(layers.Layer):
    def __init__(self, width, dilation, **kwargs):
        super().__init__(**kwargs)
        self.gate = layers.Conv1D(2 * width, 3, padding="causal", dilation_rate=dilation)
        self.mix = layers.Dense(width)
        self.norm = layers.LayerNormalization()

    def build(self, shape):
        self.gate.build(shape)
        inner = self.gate.compute_output_shape(shape)
        self.mix.build((*inner[:-1], inner[-1] // 2))
        self.norm.build(shape)

    def call(self, x):
        a, b = ops.split(self.gate(x), 2, axis=-1)
        return self.norm(x + self.mix(ops.tanh(a) * ops.sigmoid(b)))


def make_model(width=40):
    past = keras.Input((PAST, FEATURES))
    x = layers.Dense(width)(past)
    for dilation in (1, 2, 4, 8, 16):
        x = Residual(width, dilation)(x)
    x = layers.Concatenate()([x[:, -1], layers.GlobalAveragePooling1D()(x)])
    return keras.Model(past, layers.Dense(AHEAD)(x))


@keras.saving.register_keras_serializable()
def pinball(y, guess):
    gap = y - guess
    return ops.mean(ops.maximum(0.5 * gap, -0.5 * gap))


class Journal(keras.callbacks.Callback):
    def __init__(self, path):
        super().__init__()
        self.file = open(path, "w", buffering=1)
        self.seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.seconds.append(time.perf_counter() - self._start)
        self.file.write(f"{len(self.seconds)},{float(logs['loss']):.5f}\n")

    def on_epoch_end(self, epoch, logs=None):
        rate = float(ops.convert_to_numpy(self.model.optimizer.learning_rate))
        print(f"epoch {epoch} loss {logs['loss']:.4f} val {logs['val_loss']:.4f} rate {rate:.1e}", flush=True)

    def on_train_end(self, logs=None):
        self.file.close()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--hours", type=int, default=4200)
    ap.add_argument("--batch", type=int, default=64)
    args = ap.parse_args()
    keras.utils.set_random_seed(0)
    series = make_series(args.hours)
    cut = args.hours - 600
    mean, std = series[:cut].mean(0), series[:cut].std(0)
    series = (series - mean) / std
    train = windows(series[:cut], args.batch, True)
    valid = windows(series[cut:], args.batch, False).cache()

    model = make_model()
    steps = int(train.cardinality()) * args.epochs
    schedule = keras.optimizers.schedules.CosineDecay(1e-3, steps, warmup_target=3e-3, warmup_steps=20)
    model.compile(keras.optimizers.AdamW(schedule, clipnorm=1.0), loss=pinball, metrics=["mae"])
    with tempfile.TemporaryDirectory(prefix="demand_") as folder:
        journal = Journal(os.path.join(folder, "loss.csv"))
        saver = keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"), monitor="val_loss",
                                                save_best_only=True, save_weights_only=True)
        begin = time.perf_counter()
        model.fit(train, validation_data=valid, epochs=args.epochs, shuffle=False, verbose=0,
                  callbacks=[journal, saver, keras.callbacks.TerminateOnNaN()])
        elapsed = time.perf_counter() - begin
        guess = model.predict(valid, verbose=0)
    print("forecast", guess.shape, f"median batch {np.median(journal.seconds):.4f}")
    print(f"steps={len(journal.seconds)} s_per_step={elapsed / len(journal.seconds):.4f} "
          f"wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
