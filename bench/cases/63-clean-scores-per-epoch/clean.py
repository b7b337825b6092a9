"""Sensor faults by a 1-D network: validation and an F1 score after each epoch."""
import json
import time

import numpy as np
import tensorflow as tf


def recordings(count, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, 256)
    labels = rng.integers(0, 4, count)
    base = np.sin(2 * np.pi * (3 + rng.random((count, 1))) * t)
    faults = np.stack([0 * t, np.sign(np.sin(40 * t)) * 0.3, (t > 0.6) * 0.8, np.sin(150 * t) * 0.3])
    return (base + faults[labels] + rng.normal(0, 0.2, base.shape)).astype("float32")[..., None], labels


class F1PerEpoch(tf.keras.callbacks.Callback):
    """Macro F1 on held-out recordings; once per epoch, in one call of predict."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def on_epoch_end(self, epoch, logs=None):
        guess = self.model.predict(self.x, batch_size=256, verbose=0).argmax(1)
        scores = []
        for label in np.unique(self.y):
            hit = np.sum((guess == label) & (self.y == label))
            scores.append(2 * hit / max(1, np.sum(guess == label) + np.sum(self.y == label)))
        print(f"  macro F1 {np.mean(scores):.3f}")


def network():
    model = tf.keras.Sequential([
        tf.keras.layers.Input((256, 1)),
        tf.keras.layers.Conv1D(64, 9, padding="same", activation="relu"),
        tf.keras.layers.MaxPooling1D(2),
        tf.keras.layers.Conv1D(96, 9, padding="same", activation="relu"),
        tf.keras.layers.MaxPooling1D(2),
        tf.keras.layers.Conv1D(96, 9, padding="same", activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(4),
    ])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    tf.keras.utils.set_random_seed(63)
    x, y = recordings(3600, 63)
    model = network()
    model.fit(x[:128], y[:128], batch_size=64, verbose=0)
    model.predict(x[:256], batch_size=256, verbose=0)
    epochs = 3
    start = time.perf_counter()
    model.fit(x[:3200], y[:3200], batch_size=64, epochs=epochs, verbose=2, validation_data=(x[3200:3400], y[3200:3400]),
              callbacks=[F1PerEpoch(x[3400:], y[3400:])])
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": 3200 * epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
