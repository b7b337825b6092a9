"""Galaxy colours to redshift: fit with a callback that prints a line every twenty batches."""
import json
import sys
import time

import numpy as np
import tensorflow as tf


class Progress(tf.keras.callbacks.Callback):
    """`epoch 1  120/300  loss 0.123  2,345 samples/s` on one line."""

    def __init__(self, batch, every=20, out=sys.stdout):
        super().__init__()
        self.batch, self.every, self.out = batch, every, out

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch + 1
        self.since = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if (batch + 1) % self.every:
            return
        now = time.perf_counter()
        rate = self.every * self.batch / (now - self.since)
        self.since = now
        self.out.write(f"epoch {self.epoch}  {batch + 1}/{self.params['steps']}  "
                       f"loss {logs['loss']:.4f}  {rate:,.0f} samples/s\n")
        self.out.flush()


def galaxies(count, seed):
    """Magnitudes in eight bands and their errors."""
    rng = np.random.default_rng(seed)
    redshift = rng.gamma(3, 0.2, count)
    bands = np.linspace(0.3, 2.2, 8)
    break_at = 0.4 * (1 + redshift[:, None])
    magnitude = 22 + 2 / (1 + np.exp((bands - break_at) * 8)) + rng.normal(0, 0.8, (count, 1))
    error = rng.gamma(2, 0.02, magnitude.shape)
    x = np.concatenate([magnitude + rng.normal(0, 1, error.shape) * error - 22, error], 1)
    return x.astype("float32"), redshift.astype("float32")


def regressor(width):
    inputs = tf.keras.Input((16,))
    h = tf.keras.layers.Dense(width, activation="relu")(inputs)
    for _ in range(3):
        h = tf.keras.layers.Dense(width, activation="relu")(h)
        h = tf.keras.layers.Dropout(0.1)(h)
    mean = tf.keras.layers.Dense(1)(h)
    model = tf.keras.Model(inputs, mean)
    model.compile(tf.keras.optimizers.Adam(5e-4), tf.keras.losses.Huber(0.1), metrics=["mae"])
    return model


def main():
    tf.keras.utils.set_random_seed(65)
    x, y = galaxies(51_200, 65)
    model = regressor(512)
    model.fit(x[:1024], y[:1024], batch_size=256, verbose=0)
    epochs = 3
    start = time.perf_counter()
    model.fit(x, y, batch_size=256, epochs=epochs, verbose=0, callbacks=[Progress(256)])
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": len(x) * epochs, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
