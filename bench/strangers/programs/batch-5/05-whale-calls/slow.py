"""Classify hydrophone clips (log-mel patches) into whale call types.

The patches come from the archive converter, which appends them to one HDF5
file per deployment.
"""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import h5py
import keras
import numpy as np

CALLS = ["moan", "upsweep", "downsweep", "pulse", "whistle", "noise"]
MELS, FRAMES = 64, 48


def synth_patch_block(rng, n):
    """Log-mel patches in dB: coloured noise floor plus one ridge per call type."""
    labels = rng.integers(0, len(CALLS), n)
    floor = -60 + np.linspace(10, 0, MELS)[None, :, None]
    patches = floor + 4 * rng.normal(size=(n, MELS, FRAMES))
    t = np.linspace(0, 1, FRAMES)
    mel = np.arange(MELS)[:, None]
    ridges = [0.2 + 0 * t, 0.2 + 0.5 * t, 0.8 - 0.5 * t,
              0.5 + 0.3 * np.sign(np.sin(30 * t)), 0.7 + 0.1 * np.sin(12 * t)]
    for k, ridge in enumerate(ridges):
        mask = np.exp(-0.5 * ((mel - ridge * MELS) / 2.0) ** 2)
        patches[labels == k] += 14 * mask
    return np.round(patches * 2).astype("float32") / 2, labels.astype("int64")


def convert_deployment(path, n, block=256):
    """What the converter does at sea: append a block whenever the recorder flushes."""
    rng = np.random.default_rng(21)
    with h5py.File(path, "w") as f:
        spec = f.create_dataset("spec", (0, MELS, FRAMES), maxshape=(None, MELS, FRAMES),
                                dtype="f4", chunks=(block, MELS, FRAMES),
                                compression="gzip", shuffle=True)
        call = f.create_dataset("call", (0,), maxshape=(None,), dtype="i8", chunks=(block,))
        for start in range(0, n, block):
            x, y = synth_patch_block(rng, min(block, n - start))
            spec.resize(start + len(x), axis=0)
            call.resize(start + len(x), axis=0)
            spec[start:] = x
            call[start:] = y


class Hydrophone(keras.utils.PyDataset):
    def __init__(self, path, batch_size, rows, augment=True, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.file = h5py.File(path, "r")
        self.spec = self.file["spec"]
        self.call = self.file["call"][:]
        self.batch_size = batch_size
        self.rows = np.array(rows)
        self.augment = augment
        self.rng = np.random.default_rng(seed)
        self.on_epoch_end()

    def __len__(self):
        return len(self.rows) // self.batch_size

    def on_epoch_end(self):
        if self.augment:
            self.rng.shuffle(self.rows)

    def __getitem__(self, i):
        rows = np.sort(self.rows[i * self.batch_size:(i + 1) * self.batch_size])
        x = (self.spec[rows] + 60.0) / 20.0
        if self.augment:
            x = np.roll(x, self.rng.integers(-4, 5), axis=2)
        return x[..., None], self.call[rows]

    def close(self):
        self.file.close()


def build_model():
    def block(x, filters):
        x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = keras.layers.BatchNormalization()(x)
        x = keras.layers.ReLU()(x)
        return keras.layers.MaxPooling2D()(x)

    inputs = keras.Input((MELS, FRAMES, 1))
    x = block(inputs, 12)
    x = block(x, 24)
    x = block(x, 48)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dropout(0.2)(x)
    outputs = keras.layers.Dense(len(CALLS), activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(2e-3),
                  loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class SteadyClock(keras.callbacks.Callback):
    """Counts the steps of every epoch but the first."""

    def __init__(self):
        super().__init__()
        self.steps, self.seconds = 0, 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if epoch > 0:
            self.seconds += time.perf_counter() - self.t0
            self.steps += self.params["steps"]


def main(n=1280, batch_size=32, epochs=3):
    keras.utils.set_random_seed(6)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "deployment_07.h5")
        convert_deployment(path, n)
        data = Hydrophone(path, batch_size, range(n))
        clock = SteadyClock()
        model = build_model()
        model.fit(data, epochs=epochs, verbose=2, callbacks=[clock])
        data.close()
    print(json.dumps({"samples": clock.steps * batch_size, "seconds": round(clock.seconds, 4)}))


if __name__ == "__main__":
    main()
