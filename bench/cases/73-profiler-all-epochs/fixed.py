"""Prices of flats: a dense network, watched in TensorBoard."""
import json
import tempfile
import time

import numpy as np
import tensorflow as tf

ROWS, FIELDS, BATCH, EPOCHS = 16384, 64, 64, 8


class Clock(tf.keras.callbacks.Callback):
    """Times all epochs but the first."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.start = time.perf_counter()


def main():
    tf.keras.utils.set_random_seed(73)
    rng = np.random.default_rng(73)
    x = rng.standard_normal((ROWS, FIELDS)).astype("float32")
    y = x[:, :4].sum(1, keepdims=True)
    layers = [tf.keras.layers.Dense(128, activation="relu") for _ in range(6)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    clock = Clock()
    board = tf.keras.callbacks.TensorBoard(tempfile.mkdtemp(), profile_batch=0)
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[clock, board])
    seconds = time.perf_counter() - clock.start
    print(json.dumps({"samples": (EPOCHS - 1) * ROWS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
