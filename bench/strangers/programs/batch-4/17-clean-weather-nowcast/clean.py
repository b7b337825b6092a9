"""Nowcast of a gridded weather field: six past frames in, the next frame out. PyDataset, fit, checkpoint per epoch."""
import json
import os
import shutil
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np

SIZE = 48
HISTORY = 6
FRAMES = 700
TRAIN_FRAMES = 600
BATCH = 32
EPOCHS = 4
WIDTH = 32


def simulate(seed=0):
    """Smooth blobs that drift and fade: a stand-in for radar reflectivity."""
    rng = np.random.default_rng(seed)
    ky = np.fft.fftfreq(SIZE)[:, None]
    kx = np.fft.rfftfreq(SIZE)[None, :]
    filt = np.exp(-((ky ** 2 + kx ** 2) / 0.004))
    shift = np.exp(-2j * np.pi * (ky * 0.7 + kx * 1.3))
    state = np.fft.rfft2(rng.standard_normal((SIZE, SIZE))) * filt
    frames = np.empty((FRAMES, SIZE, SIZE), np.float32)
    for t in range(FRAMES):
        kick = np.fft.rfft2(rng.standard_normal((SIZE, SIZE))) * filt
        state = 0.98 * state * shift + 0.2 * kick
        frames[t] = np.fft.irfft2(state, s=(SIZE, SIZE))
    return (frames - frames.mean()) / frames.std()


class NowcastData(keras.utils.PyDataset):
    """Windows are laid out once as (window, y, x, history); a batch is one gather."""

    def __init__(self, frames, shuffle, seed=0, **kwargs):
        super().__init__(**kwargs)
        stacked = np.lib.stride_tricks.sliding_window_view(frames, HISTORY + 1, axis=0)
        self.inputs = np.ascontiguousarray(stacked[..., :HISTORY])
        self.targets = np.ascontiguousarray(stacked[..., HISTORY:])
        self.order = np.arange(len(self.inputs))
        self.rng = np.random.default_rng(seed)
        self.shuffle = shuffle
        self.on_epoch_end()

    def __len__(self):
        return len(self.order) // BATCH

    def __getitem__(self, index):
        rows = self.order[index * BATCH:(index + 1) * BATCH]
        return self.inputs[rows], self.targets[rows]

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.order)


def residual(x, width):
    h = keras.layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    h = keras.layers.Conv2D(width, 3, padding="same")(h)
    return keras.layers.Activation("relu")(keras.layers.Add()([x, h]))


def build_model():
    inputs = keras.Input((SIZE, SIZE, HISTORY))
    x = keras.layers.Conv2D(WIDTH, 5, strides=2, padding="same", activation="relu")(inputs)
    for _ in range(3):
        x = residual(x, WIDTH)
    x = keras.layers.UpSampling2D(2)(x)
    x = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    change = keras.layers.Conv2D(1, 3, padding="same")(x)
    outputs = keras.layers.Add()([inputs[..., -1:], change])
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", jit_compile=False)
    return model


class Stopwatch(keras.callbacks.Callback):
    """Starts when the first epoch has ended."""

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter()
        if epoch == 0:
            self.begin = now
        self.seconds = now - self.begin


def persistence_error(data):
    return float(np.mean((data.targets - data.inputs[..., -1:]) ** 2))


def main():
    keras.utils.set_random_seed(4)
    frames = simulate()
    train = NowcastData(frames[:TRAIN_FRAMES], shuffle=True)
    valid = NowcastData(frames[TRAIN_FRAMES:], shuffle=False)
    folder = tempfile.mkdtemp(prefix="nowcast_")
    watch = Stopwatch()
    callbacks = [
        keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.weights.h5"), monitor="val_loss",
                                        save_best_only=True, save_weights_only=True),
        keras.callbacks.ReduceLROnPlateau(patience=2),
        keras.callbacks.CSVLogger(os.path.join(folder, "log.csv")),
        watch,
    ]
    try:
        history = build_model().fit(train, validation_data=valid, epochs=EPOCHS, callbacks=callbacks, verbose=2)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"persistence {persistence_error(valid):.4f}, model {min(history.history['val_loss']):.4f}")
    samples = (EPOCHS - 1) * len(train) * BATCH
    print(json.dumps({"samples": samples, "seconds": round(watch.seconds, 3)}))


if __name__ == "__main__":
    main()
