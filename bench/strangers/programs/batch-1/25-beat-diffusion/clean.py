"""Class-conditional diffusion model of single heart beats (DDPM, noise prediction with a residual MLP)."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

BEAT = 256
CLASSES = 5
N_TRAIN = 24576
N_VAL = 2048
BATCH = 2048
WIDTH = 512
BLOCKS = 4
TIMESTEPS = 400
EPOCHS = 5


def synth_beats(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, n)
    t = np.linspace(0, 1, BEAT, dtype=np.float32)[None, :]

    def bump(centre, width, height):
        return height[:, None] * np.exp(-((t - centre[:, None]) ** 2) / (2 * width[:, None] ** 2))

    one = np.ones(n, np.float32)
    x = bump(0.2 + rng.normal(0, 0.01, n), 0.02 * one, 0.15 + 0.05 * (labels == 1))
    x = x + bump(0.4 + rng.normal(0, 0.01, n), 0.008 + 0.006 * labels, one)
    x = x - bump(0.44 + rng.normal(0, 0.01, n), 0.01 * one, 0.2 + 0.08 * (labels == 2))
    x = x + bump(0.68 + rng.normal(0, 0.02, n), 0.04 * one, 0.3 - 0.12 * (labels == 3))
    x = x + rng.normal(0, 0.02, (n, BEAT))
    return ((x - x.mean()) / x.std()).astype(np.float32), labels.astype(np.int32)


def cosine_schedule(steps):
    s = np.arange(steps + 1) / steps
    f = np.cos((s + 0.008) / 1.008 * np.pi / 2) ** 2
    betas = np.clip(1 - f[1:] / f[:-1], 0, 0.999)
    return np.cumprod(1 - betas).astype(np.float32)


ALPHA_BAR = tf.constant(cosine_schedule(TIMESTEPS))


def timestep_table(dim):
    freq = np.exp(-np.log(10000.0) * np.arange(dim // 2) / (dim // 2))
    angle = np.arange(TIMESTEPS)[:, None] * freq[None, :]
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)


TIME_TABLE = tf.constant(timestep_table(64))


def build_denoiser():
    beat = keras.Input((BEAT,))
    time_code = keras.Input((64,))
    label = keras.Input((), dtype="int32")
    cond = keras.layers.Concatenate()([time_code, keras.layers.Embedding(CLASSES, 32)(label)])
    cond = keras.layers.Dense(128, activation="relu")(cond)
    h = keras.layers.Dense(WIDTH)(beat)
    for _ in range(BLOCKS):
        r = keras.layers.Concatenate()([h, cond])
        r = keras.layers.Dense(WIDTH, activation="relu")(r)
        r = keras.layers.Dense(WIDTH)(r)
        h = keras.layers.Add()([h, r])
    return keras.Model([beat, time_code, label], keras.layers.Dense(BEAT)(h))


class Trainer:
    def __init__(self, folder):
        self.beats, self.labels = map(tf.constant, synth_beats(N_TRAIN, 1))
        self.val_beats, self.val_labels = map(tf.constant, synth_beats(N_VAL, 2))
        self.model = build_denoiser()
        self.optimizer = keras.optimizers.Adam(3e-4)
        self.loss = keras.metrics.Mean()
        self.val_loss = keras.metrics.Mean()
        self.path = os.path.join(folder, "denoiser.weights.h5")
        self.best = float("inf")

    def noise_loss(self, beats, labels, training):
        t = tf.random.uniform((tf.shape(beats)[0],), 0, TIMESTEPS, tf.int32)
        a = tf.gather(ALPHA_BAR, t)[:, None]
        noise = tf.random.normal(tf.shape(beats))
        noisy = tf.sqrt(a) * beats + tf.sqrt(1.0 - a) * noise
        guess = self.model([noisy, tf.gather(TIME_TABLE, t), labels], training=training)
        return tf.reduce_mean(tf.square(guess - noise))

    @tf.function
    def train_step(self, rows):
        beats, labels = tf.gather(self.beats, rows), tf.gather(self.labels, rows)
        with tf.GradientTape() as tape:
            loss = self.noise_loss(beats, labels, True)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        self.loss.update_state(loss)

    @tf.function
    def val_step(self):
        self.val_loss.update_state(self.noise_loss(self.val_beats, self.val_labels, False))

    def epoch(self):
        self.loss.reset_state()
        self.val_loss.reset_state()
        order = tf.random.shuffle(tf.range(N_TRAIN))
        for rows in tf.split(order, N_TRAIN // BATCH):
            self.train_step(rows)
        self.val_step()
        val_loss = float(self.val_loss.result())
        if val_loss < self.best:
            self.best = val_loss
            self.model.save_weights(self.path)
        return float(self.loss.result()), val_loss


def main():
    keras.utils.set_random_seed(8)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(folder)
        trainer.epoch()
        start = time.perf_counter()
        for epoch in range(1, EPOCHS):
            loss, val_loss = trainer.epoch()
            print("epoch %d loss %.4f val_loss %.4f" % (epoch + 1, loss, val_loss))
        seconds = time.perf_counter() - start
    samples = (EPOCHS - 1) * N_TRAIN
    print(json.dumps({"samples": samples, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
