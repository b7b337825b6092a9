"""Vibration monitoring: conv autoencoder on sensor windows, then a nightly sweep of anomaly scores per machine."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import keras
from keras import layers

SENSORS = 8
WINDOW = 256
MACHINES = 4
WINDOWS_PER_MACHINE = 2048
TRAIN_WINDOWS = 512
PREDICT_BATCH = 128


def simulate(n_windows, rng, faulty=False):
    t = np.arange(WINDOW, dtype=np.float32) / 100.0
    base = rng.uniform(4, 12, size=(n_windows, 1, SENSORS)).astype(np.float32)
    phase = rng.uniform(0, 6.28, size=(n_windows, 1, SENSORS)).astype(np.float32)
    x = np.sin(6.28 * base * t[None, :, None] + phase)
    x += 0.1 * rng.standard_normal(x.shape, dtype=np.float32)
    if faulty:
        hit = rng.random(n_windows) < 0.03
        x[hit, 100:130] += rng.normal(0, 2.5, size=(int(hit.sum()), 30, SENSORS)).astype(np.float32)
    return x.astype(np.float32)


def build_autoencoder():
    inp = keras.Input((WINDOW, SENSORS))
    x = layers.Conv1D(64, 9, strides=2, padding="same", activation="relu")(inp)
    x = layers.Conv1D(128, 9, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv1D(128, 5, padding="same", activation="relu")(x)
    x = layers.Conv1D(16, 1, padding="same")(x)
    x = layers.Conv1D(128, 5, padding="same", activation="relu")(x)
    x = layers.UpSampling1D(2)(x)
    x = layers.Conv1D(64, 9, padding="same", activation="relu")(x)
    x = layers.UpSampling1D(2)(x)
    out = layers.Conv1D(SENSORS, 9, padding="same")(x)
    model = keras.Model(inp, out)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", jit_compile=False)
    return model


def window_scores(model, windows):
    recon = model.predict(windows, batch_size=PREDICT_BATCH, verbose=0)
    recon -= windows
    np.square(recon, out=recon)
    return recon.mean(axis=(1, 2))


def sweep(model, fleet, threshold):
    report = {}
    for name, windows in fleet.items():
        scores = window_scores(model, windows)
        report[name] = (int((scores > threshold).sum()), float(scores.max()))
    return report


def main():
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(4)
    healthy = simulate(TRAIN_WINDOWS, rng)
    model = build_autoencoder()
    model.fit(healthy, healthy, batch_size=64, epochs=1, verbose=0)
    threshold = float(np.quantile(window_scores(model, healthy), 0.995))
    fleet = {"pump-%02d" % i: simulate(WINDOWS_PER_MACHINE, rng, faulty=True) for i in range(MACHINES)}

    start = time.perf_counter()
    report = sweep(model, fleet, threshold)
    seconds = time.perf_counter() - start
    for name, (alarms, worst) in report.items():
        print("%s alarms %d worst %.3f" % (name, alarms, worst))
    print(json.dumps({"samples": MACHINES * WINDOWS_PER_MACHINE, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
