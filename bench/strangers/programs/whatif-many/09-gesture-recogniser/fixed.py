"""Gesture recogniser for a wrist band: six-axis motion windows, ten gestures, recurrent network on a shared box."""
import json
import pathlib
import tempfile
import time

import keras
import numpy as np
from keras import layers

GESTURES = 10
WINDOW = 50
AXES = 6
BATCH = 32
STEPS_PER_EPOCH = 20
EPOCHS = 10
SAVE_EVERY = 80       # batches: the box is rebooted without notice
VALIDATE_EVERY = 8    # epochs


def make_recordings(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, GESTURES, n)
    t = np.linspace(0, 1, WINDOW)[None, :, None]
    axis = np.arange(AXES)[None, None, :]
    freq = 1 + y[:, None, None] * 0.7
    phase = rng.uniform(0, 0.6, (n, 1, AXES))
    x = np.sin(2 * np.pi * freq * t + phase + axis * (0.3 + 0.1 * y[:, None, None]))
    x = x * rng.uniform(0.6, 1.4, (n, 1, 1)) + rng.normal(0, 0.5, (n, WINDOW, AXES))
    return x.astype("float32"), y.astype("int32")


class Recordings(keras.utils.PyDataset):
    """Endless shuffled windows, a little time-shifted each time they are drawn."""

    def __init__(self, x, y, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y = x, y

    def __len__(self):
        return STEPS_PER_EPOCH

    def __getitem__(self, idx):
        rng = np.random.default_rng(idx + 1000)
        pick = rng.integers(0, len(self.x), BATCH)
        shift = int(rng.integers(-4, 5))
        return np.roll(self.x[pick], shift, axis=1), self.y[pick]


def build_model():
    inp = keras.Input((WINDOW, AXES))
    x = layers.Conv1D(48, 5, padding="same", activation="relu")(inp)
    x = layers.GRU(96, return_sequences=True)(x)
    x = layers.GRU(96)(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dropout(0.3)(x)
    return keras.Model(inp, layers.Dense(GESTURES, activation="softmax")(x))


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.marks = []

    def on_epoch_begin(self, epoch, logs=None):
        self.marks.append(time.perf_counter())

    def on_train_end(self, logs=None):
        self.marks.append(time.perf_counter())

    def steady(self, skip=2):
        return self.marks[-1] - self.marks[skip], len(self.marks) - 1 - skip


def safety_callbacks(root):
    return [
        keras.callbacks.BackupAndRestore(root / "resume", save_freq=SAVE_EVERY),
        keras.callbacks.ModelCheckpoint(root / "latest.keras", save_freq=SAVE_EVERY),
    ]


def main():
    keras.utils.set_random_seed(12)
    root = pathlib.Path(tempfile.mkdtemp(prefix="gesture-"))
    train = Recordings(*make_recordings(6000, 1))
    val_x, val_y = make_recordings(1600, 2)

    model = build_model()
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    clock = Clock()
    hist = model.fit(
        train,
        epochs=EPOCHS,
        validation_data=(val_x, val_y),
        validation_freq=VALIDATE_EVERY,
        callbacks=[clock, *safety_callbacks(root)],
        verbose=0,
    )
    print("val accuracy", [round(v, 3) for v in hist.history["val_accuracy"]][-3:])
    print("saved", sorted(p.name for p in root.iterdir()))
    seconds, epochs = clock.steady()
    print(json.dumps({"samples": epochs * STEPS_PER_EPOCH * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
