"""Rhythm classification of single-lead ECG strips kept in one compressed archive."""
import json
import os
import tempfile
import time

import numpy as np
import keras
from keras import layers

N_STRIPS = 3000
STRIP_LEN = 1000
N_RHYTHMS = 4
BATCH = 32
EPOCHS = 2


def synthesize(n, rng):
    rhythm = rng.integers(0, N_RHYTHMS, n)
    t = np.arange(STRIP_LEN, dtype=np.float32) / 250.0
    rate = 0.8 + 0.45 * rhythm[:, None] + rng.normal(0.0, 0.05, (n, 1))
    phase = rng.uniform(0.0, 2 * np.pi, (n, 1))
    beat = np.exp(8.0 * (np.cos(2 * np.pi * rate * t + phase) - 1.0))
    signal = 900.0 * beat + rng.normal(0.0, 60.0, beat.shape)
    return signal.astype(np.int16), rhythm.astype(np.int32)


def export_archive(path):
    rng = np.random.default_rng(21)
    signals, rhythms = synthesize(N_STRIPS, rng)
    gain = rng.uniform(180.0, 220.0, N_STRIPS).astype(np.float32)
    np.savez_compressed(path, signals=signals, rhythms=rhythms, gain=gain)


class EcgStrips(keras.utils.PyDataset):
    """Batches of normalised strips, reshuffled every epoch."""

    def __init__(self, path, strip_ids, batch_size, shuffle, **kwargs):
        super().__init__(**kwargs)
        self.archive = np.load(path)
        self.strip_ids = np.array(strip_ids)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.rng = np.random.default_rng(5)
        self.on_epoch_end()

    def __len__(self):
        return len(self.strip_ids) // self.batch_size

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.strip_ids)

    def __getitem__(self, index):
        ids = self.strip_ids[index * self.batch_size:(index + 1) * self.batch_size]
        raw = self.archive["signals"][ids].astype(np.float32)
        millivolt = raw / self.archive["gain"][ids][:, None]
        millivolt -= millivolt.mean(axis=1, keepdims=True)
        return millivolt[..., None], self.archive["rhythms"][ids]


class StepClock(keras.callbacks.Callback):
    """Starts counting after the first epoch."""

    def __init__(self):
        super().__init__()
        self.started = None
        self.seconds = 0.0
        self.batches = 0

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if self.started is not None:
            self.batches += 1

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.started


def build_model():
    inputs = keras.Input((STRIP_LEN, 1))
    x = inputs
    for filters, stride in ((16, 2), (32, 2), (32, 2), (64, 2)):
        x = layers.Conv1D(filters, 7, strides=stride, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dropout(0.2)(x)
    outputs = layers.Dense(N_RHYTHMS, activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    keras.utils.set_random_seed(2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "strips.npz")
        export_archive(path)
        order = np.random.default_rng(0).permutation(N_STRIPS)
        train = EcgStrips(path, order[300:], BATCH, shuffle=True)
        held_out = EcgStrips(path, order[:300], BATCH, shuffle=False)
        model = build_model()
        clock = StepClock()
        model.fit(train, epochs=EPOCHS, callbacks=[clock], verbose=2)
        loss, accuracy = model.evaluate(held_out, verbose=0)
    print(f"held out: loss {loss:.3f} accuracy {accuracy:.3f}")
    print(json.dumps({"samples": clock.batches * BATCH, "seconds": round(clock.seconds, 4)}))


if __name__ == "__main__":
    main()
