"""Denoising autoencoder for vibration spectra, with a custom training loop."""
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

N_SPECTRA = 4096
BINS = 512
BATCH = 512
EPOCHS = 3
NOISE = 0.2


def make_spectra(n, seed):
    """Harmonics of a random shaft speed over a sloping floor."""
    rng = np.random.default_rng(seed)
    bins = np.arange(BINS, dtype=np.float32)
    speed = rng.uniform(12.0, 60.0, (n, 1)).astype(np.float32)
    spectra = np.tile(0.5 * np.exp(-bins / 300.0), (n, 1))
    for order in range(1, 5):
        height = rng.uniform(0.2, 1.0, (n, 1)).astype(np.float32) / order
        spectra += height * np.exp(-0.5 * np.square((bins - order * speed) / 3.0))
    return spectra.astype(np.float32)


def build_autoencoder():
    return keras.Sequential([
        keras.Input((BINS,)),
        layers.Dense(2048, activation="relu"),
        layers.Dense(1024, activation="relu"),
        layers.Dense(64),
        layers.Dense(1024, activation="relu"),
        layers.Dense(2048, activation="relu"),
        layers.Dense(BINS),
    ])


class Trainer:
    def __init__(self, model, folder):
        self.model = model
        self.optimizer = keras.optimizers.Adam(3e-4)
        self.optimizer.build(model.trainable_variables)
        self.weights_file = os.path.join(folder, "denoiser.weights.h5")

    @tf.function
    def train_step(self, clean):
        noisy = clean + tf.random.normal(tf.shape(clean), stddev=NOISE)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(noisy, training=True) - clean))
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def test_loss(self, noisy, clean):
        return tf.reduce_mean(tf.square(self.model(noisy, training=False) - clean))

    def epoch(self, data):
        losses = [self.train_step(batch) for batch in data]
        return float(tf.reduce_mean(losses)), len(losses)

    def save(self):
        self.model.save_weights(self.weights_file)


def main():
    keras.utils.set_random_seed(9)
    spectra = make_spectra(N_SPECTRA, 0)
    data = tf.data.Dataset.from_tensor_slices(spectra)
    data = data.shuffle(N_SPECTRA, seed=9).batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    test_clean = make_spectra(BATCH, 1)
    test_noisy = test_clean + np.random.default_rng(2).normal(0.0, NOISE, test_clean.shape).astype(np.float32)
    test_clean, test_noisy = tf.constant(test_clean), tf.constant(test_noisy)

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(build_autoencoder(), folder)
        for batch in data.take(2):
            trainer.train_step(batch)
        trainer.test_loss(test_noisy, test_clean)

        steps = 0
        start = time.perf_counter()
        for number in range(EPOCHS):
            loss, done = trainer.epoch(data)
            steps += done
            held_out = float(trainer.test_loss(test_noisy, test_clean))
            print(f"epoch {number + 1}: loss {loss:.5f}, held out {held_out:.5f}")
        seconds = time.perf_counter() - start
        trainer.save()
    print(json.dumps({"samples": steps * BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
