"""Variational autoencoder whose every batch is logged for TensorBoard."""
import argparse
import json
import tempfile
import time

import numpy as np
import tensorflow as tf


class VAE(tf.keras.Model):
    def __init__(self, dim, latent):
        super().__init__()
        self.encode = tf.keras.Sequential([tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(2 * latent)])
        self.decode = tf.keras.Sequential([tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(dim)])

    def call(self, x):
        mean, spread = tf.split(self.encode(x), 2, axis=1)
        z = mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))
        kl = 0.5 * tf.reduce_sum(tf.square(mean) + tf.exp(spread) - spread - 1, 1)
        return self.decode(z), tf.reduce_mean(kl)


class Log:
    """Scalars and weight histograms of a run."""

    def __init__(self, folder, every):
        self.writer = tf.summary.create_file_writer(folder)
        self.every = every

    def __call__(self, step, model, losses):
        if step % self.every:
            return
        with self.writer.as_default(step=step):
            for name, value in losses.items():
                tf.summary.scalar(name, value)
            for index, variable in enumerate(model.trainable_variables):
                tf.summary.histogram(f"weights/{index}", variable)
            self.writer.flush()


def run(steps, every, folder, batch=128, dim=200):
    tf.keras.utils.set_random_seed(19)
    rng = np.random.default_rng(19)
    data = np.tanh(rng.standard_normal((12800, 8)) @ rng.standard_normal((8, dim))).astype("float32")
    data = iter(tf.data.Dataset.from_tensor_slices(data).shuffle(12800).repeat().batch(batch).prefetch(2))
    model, optimizer, log = VAE(dim, 8), tf.keras.optimizers.Adam(1e-3), Log(folder, every)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            out, kl = model(x)
            fit = tf.reduce_mean(tf.reduce_sum(tf.square(out - x), 1))
            loss = fit + kl
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return {"loss": loss, "kl": kl, "fit": fit}

    log(0, model, train(next(data)))
    t0 = time.perf_counter()
    for step in range(1, steps + 1):
        losses = train(next(data))
        log(step, model, losses)
    seconds = time.perf_counter() - t0
    print("loss", round(float(losses["loss"]), 3))
    return {"samples": steps * batch, "seconds": round(seconds, 3)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--log-every", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        print(json.dumps(run(args.steps, args.log_every, where)))
