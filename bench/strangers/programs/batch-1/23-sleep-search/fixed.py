"""Random search over a sleep-stage classifier; EEG epochs of 30 s become log spectrograms in the input pipeline."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

RATE = 100
EPOCH_SECONDS = 30
CHANNELS = 2
STAGES = 5
N_TRAIN = 1280
N_VAL = 1280
BATCH = 64
QUICK_VAL_BATCHES = 12
TRIALS = 3
EPOCHS = 7
FRAME, HOP = 256, 16


def record_night(n, seed):
    rng = np.random.default_rng(seed)
    stage = rng.integers(0, STAGES, n)
    t = np.arange(RATE * EPOCH_SECONDS) / RATE
    centre = np.array([10.0, 7.0, 13.0, 1.5, 5.0])[stage]
    sig = np.empty((n, t.size, CHANNELS), np.int16)
    for i in range(n):
        f = centre[i] + rng.normal(0, 0.6, (CHANNELS, 1))
        wave = np.sin(2 * np.pi * f * t + rng.uniform(0, 6.28, (CHANNELS, 1)))
        sig[i] = (60 * wave + rng.normal(0, 120, (CHANNELS, t.size))).T
    return sig, stage.astype(np.int32)


def store(folder, name, n, seed):
    sig, stage = record_night(n, seed)
    np.save(os.path.join(folder, name + "_x.npy"), sig)
    np.save(os.path.join(folder, name + "_y.npy"), stage)


def to_spectrogram(sig, stage):
    x = tf.transpose(tf.cast(sig, tf.float32))
    x = (x - tf.reduce_mean(x, axis=1, keepdims=True)) / (tf.math.reduce_std(x, axis=1, keepdims=True) + 1e-6)
    spec = tf.abs(tf.signal.stft(x, FRAME, HOP))[..., 1:65]
    spec = tf.math.log(spec ** 2 + 1e-4)
    spec = tf.transpose(spec, [1, 2, 0])
    spec = tf.image.resize(spec, (40, 32), antialias=True)
    return spec, stage


def load(folder, name):
    x = np.load(os.path.join(folder, name + "_x.npy"))
    y = np.load(os.path.join(folder, name + "_y.npy"))
    return tf.data.Dataset.from_tensor_slices((x, y))


def make_train(folder):
    ds = load(folder, "train").map(to_spectrogram, num_parallel_calls=tf.data.AUTOTUNE).cache()
    return ds.shuffle(N_TRAIN, seed=0).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def make_val(folder, n=N_VAL):
    ds = load(folder, "val").take(n).map(to_spectrogram, num_parallel_calls=tf.data.AUTOTUNE).cache()
    return ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def build(hp):
    model = keras.Sequential([
        keras.Input((40, 32, CHANNELS)),
        keras.layers.Conv2D(hp["filters"], 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(2 * hp["filters"], 3, strides=2, padding="same", activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dropout(hp["dropout"]),
        keras.layers.Dense(hp["units"], activation="relu"),
        keras.layers.Dense(STAGES),
    ])
    model.compile(
        optimizer=keras.optimizers.Adam(hp["lr"]),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


class Stopwatch(keras.callbacks.Callback):
    """Wall time of the epochs after the first of each trial."""

    def __init__(self):
        super().__init__()
        self.seconds = 0.0
        self.epochs = 0
        self.mark = None

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.mark = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds += time.perf_counter() - self.mark
        self.epochs += EPOCHS - 1


def draw(rng):
    return {
        "filters": int(rng.choice([12, 16, 20])),
        "units": int(rng.choice([64, 96, 128])),
        "dropout": float(rng.uniform(0.1, 0.5)),
        "lr": float(10 ** rng.uniform(-3.5, -2.5)),
    }


def search(train_ds, quick_val_ds, watch):
    rng = np.random.default_rng(42)
    best = (0.0, None, None)
    for trial in range(TRIALS):
        hp = draw(rng)
        model = build(hp)
        hist = model.fit(
            train_ds,
            epochs=EPOCHS,
            validation_data=quick_val_ds,
            callbacks=[watch],
            verbose=0,
        )
        score = max(hist.history["val_accuracy"])
        print("trial %d %s val_accuracy %.4f" % (trial, hp, score))
        if score >= best[0]:
            best = (score, hp, model)
    return best


def main():
    keras.utils.set_random_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        store(folder, "train", N_TRAIN, 1)
        store(folder, "val", N_VAL, 2)
        train_ds, val_ds = make_train(folder), make_val(folder)
        quick_val_ds = make_val(folder, QUICK_VAL_BATCHES * BATCH)
        watch = Stopwatch()
        _, hp, model = search(train_ds, quick_val_ds, watch)
        loss, acc = model.evaluate(val_ds, verbose=0)
    print("best %s: all validation epochs accuracy %.4f" % (hp, acc))
    print(json.dumps({"samples": watch.epochs * N_TRAIN, "seconds": round(watch.seconds, 4)}))


if __name__ == "__main__":
    main()
