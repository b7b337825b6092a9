"""Keyword spotting on spectra; the compiled step takes its batch from the iterator itself."""
import json
import time

import numpy as np
import tensorflow as tf

RATE = 8000
WINDOW = 1024
BINS = 256


class Archive:
    """Recordings by number; a read takes as long as the object store takes to answer."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.pitch = rng.uniform(200, 3000, count)
        self.noise = rng.normal(0, 0.4, (64, WINDOW))
        self.label = (self.pitch > 1200).astype("float32")

    def __len__(self):
        return len(self.pitch)

    def read(self, index):
        time.sleep(0.0006)
        t = np.arange(WINDOW) / RATE
        return np.sin(2 * np.pi * self.pitch[index] * t) + self.noise[index % 64]


def spectrum(wave):
    return np.log1p(np.abs(np.fft.rfft(wave * np.hanning(WINDOW))))[:BINS].astype("float32")


def spectra(archive):
    for index in range(len(archive)):
        yield spectrum(archive.read(index)), archive.label[index]


def dataset(archive, batch):
    features, labels = zip(*spectra(archive))
    ds = tf.data.Dataset.from_tensor_slices((np.stack(features), np.stack(labels)))
    return ds.repeat().batch(batch, drop_remainder=True).prefetch(2)


class Spotter:
    def __init__(self):
        self.net = tf.keras.Sequential([
            tf.keras.layers.Input((BINS,)),
            tf.keras.layers.Dense(256, activation="relu"),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(1),
        ])
        self.optimizer = tf.keras.optimizers.SGD(0.05)
        self.mean = tf.keras.metrics.Mean()

    @tf.function
    def train_step(self, iterator):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            logit = self.net(x, training=True)[:, 0]
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logit))
        weights = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.mean.update_state(loss)


def main(steps=8800, batch=32):
    tf.keras.utils.set_random_seed(11)
    iterator = iter(dataset(Archive(1600, 11), batch))
    spotter = Spotter()
    spotter.train_step(iterator)
    start = time.perf_counter()
    for _ in range(steps):
        spotter.train_step(iterator)
    seconds = time.perf_counter() - start
    print(f"loss {float(spotter.mean.result()):.3f}")
    print(json.dumps({"samples": steps * batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
