"""Concentration of four compounds from infrared spectra; the lab exports one archive per campaign."""
import json
import math
import os
import tempfile
import time

import keras
import numpy as np
from keras import layers

SPECTRA = 12000
CHANNELS = 600
COMPOUNDS = 4
BATCH = 64
EPOCHS = 4
LR = 1e-3


def export_campaign(path, seed=7):
    """Simulated export of the spectrometer: peaks of each compound plus drift and noise."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(0, 1, CHANNELS, dtype=np.float32)
    pure = np.zeros((COMPOUNDS, CHANNELS), np.float32)
    for k in range(COMPOUNDS):
        for centre, width, height in zip(rng.random(6), rng.uniform(0.004, 0.03, 6), rng.uniform(0.3, 1.0, 6)):
            pure[k] += height * np.exp(-((axis - centre) ** 2) / (2 * width**2))
    amounts = rng.dirichlet(np.ones(COMPOUNDS), SPECTRA).astype(np.float32)
    spectra = amounts @ pure
    spectra += rng.normal(0, 0.1, (SPECTRA, 1)).astype(np.float32) * axis
    spectra += 0.02 * rng.standard_normal((SPECTRA, CHANNELS), dtype=np.float32)
    held_out = np.zeros(SPECTRA, bool)
    held_out[rng.permutation(SPECTRA)[: SPECTRA // 10]] = True
    np.savez(path, spectra=spectra, amounts=amounts, held_out=held_out, axis=axis)


class CampaignSequence(keras.utils.PyDataset):
    """Batches of one campaign archive, standard normal variate corrected."""

    def __init__(self, path, held_out, shuffle, **kwargs):
        super().__init__(**kwargs)
        self.archive = np.load(path)
        self.rows = np.flatnonzero(self.archive["held_out"] == held_out)
        self.shuffle = shuffle
        self.rng = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self):
        return math.ceil(len(self.rows) / BATCH)

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.rows)

    def __getitem__(self, index):
        rows = self.rows[index * BATCH : (index + 1) * BATCH]
        x = self.archive["spectra"][rows]
        y = self.archive["amounts"][rows]
        x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
        return x[..., None], y


def build_model():
    inputs = keras.Input((CHANNELS, 1))
    x = inputs
    for filters, stride in ((16, 2), (32, 2), (48, 2)):
        x = layers.Conv1D(filters, 7, strides=stride, padding="same", activation="relu")(x)
    x = layers.Flatten()(layers.AveragePooling1D(3)(x))
    x = layers.Dense(64, activation="relu")(x)
    outputs = layers.Dense(COMPOUNDS, activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(LR), loss="kl_divergence", metrics=["mae"])
    return model


class EpochClock(keras.callbacks.Callback):
    """Starts counting after the first epoch."""

    def __init__(self):
        super().__init__()
        self.started = None
        self.seconds = 0.0

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter()
        if self.started is None:
            self.started = now
        self.seconds = now - self.started


def main():
    keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "campaign_07.npz")
        export_campaign(path)
        train = CampaignSequence(path, held_out=False, shuffle=True)
        test = CampaignSequence(path, held_out=True, shuffle=False)
        clock = EpochClock()
        model = build_model()
        history = model.fit(train, validation_data=test, epochs=EPOCHS + 1, callbacks=[clock], verbose=2)
        samples = EPOCHS * len(train.rows)
    print("validation mae", round(history.history["val_mae"][-1], 4))
    print(json.dumps({"samples": samples, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
