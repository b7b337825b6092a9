"""Trains the fraud scorer and reports remaining time and a smoothed loss in the job's status file."""
import json
import os
import tempfile
import time

import keras
import numpy as np
from keras import layers

TRANSACTIONS = 32000
COLUMNS = 40
BATCH = 32
EPOCHS = 8


def make_transactions(seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (TRANSACTIONS, COLUMNS)).astype("float32")
    score = x[:, :6].sum(1) + 1.5 * x[:, 7] * x[:, 8]
    y = (score + rng.normal(0, 1, TRANSACTIONS) > 2.5).astype("float32")
    return x, y


class RunHistory:
    """Keeps (step, time, loss) of the run and derives what the status page shows."""

    def __init__(self, total_steps, half_life=300):
        self.total_steps = total_steps
        self.decay = 0.5 ** (1.0 / half_life)
        self.records = []

    def add(self, loss):
        self.records.append({"step": len(self.records) + 1, "at": time.perf_counter(), "loss": loss})

    def step_times(self):
        return [b["at"] - a["at"] for a, b in zip(self.records, self.records[1:])]

    def remaining(self):
        mean = None
        for dt in self.step_times():
            mean = dt if mean is None else self.decay * mean + (1 - self.decay) * dt
        return None if mean is None else mean * (self.total_steps - len(self.records))

    def smooth_loss(self):
        value = None
        for r in self.records:
            value = r["loss"] if value is None else self.decay * value + (1 - self.decay) * r["loss"]
        return value


class StatusReporter(keras.callbacks.Callback):
    def __init__(self, path, total_steps, write_every=5.0):
        super().__init__()
        self.path = path
        self.history = RunHistory(total_steps)
        self.write_every = write_every
        self.last_write = 0.0

    def on_train_batch_end(self, batch, logs=None):
        self.history.add(float(logs["loss"]))
        status = {
            "step": len(self.history.records),
            "loss": self.history.smooth_loss(),
            "eta_s": self.history.remaining(),
        }
        now = time.perf_counter()
        if now - self.last_write > self.write_every:
            self.last_write = now
            with open(self.path, "w") as f:
                json.dump(status, f)


class EpochTimer(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self.begin)


def build_model():
    inp = keras.Input((COLUMNS,))
    x = layers.Dense(128, activation="relu")(inp)
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.Model(inp, layers.Dense(1, activation="sigmoid")(x))


def main():
    keras.utils.set_random_seed(8)
    x, y = make_transactions()
    model = build_model()
    model.compile(keras.optimizers.Adam(5e-4), "binary_crossentropy", metrics=["accuracy"])
    steps = len(y) // BATCH * EPOCHS
    status_file = os.path.join(tempfile.mkdtemp(prefix="status-"), "status.json")
    timer = EpochTimer()
    model.fit(
        x, y,
        batch_size=BATCH,
        epochs=EPOCHS,
        callbacks=[StatusReporter(status_file, steps), timer],
        verbose=0,
    )
    with open(status_file) as f:
        print("last status:", f.read())
    seconds = sum(timer.seconds[1:])
    print(json.dumps({"samples": (EPOCHS - 1) * len(y), "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
