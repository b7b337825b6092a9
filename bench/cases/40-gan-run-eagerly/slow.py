"""Small DCGAN on generated glyphs, with the train_step of the Keras guide."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

LATENT = 32


def glyphs(count, seed):
    """Rings and crosses of random size, 28 x 28, in [-1, 1]."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[-1:1:28j, -1:1:28j]
    radius = rng.uniform(0.3, 0.9, (count, 1, 1))
    ring = np.exp(-((np.hypot(xx, yy)[None] - radius) ** 2) * 60)
    cross = np.exp(-np.minimum(abs(xx), abs(yy))[None] ** 2 * 80) * (np.hypot(xx, yy)[None] < radius)
    images = np.where(rng.random((count, 1, 1)) < 0.5, ring, cross)
    return (images * 2 - 1).astype("float32")[..., None]


def make_discriminator():
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(8, 4, strides=2, padding="same"),
        layers.LeakyReLU(),
        layers.Conv2D(16, 4, strides=2, padding="same"),
        layers.LeakyReLU(),
        layers.Flatten(),
        layers.Dense(1),
    ], name="discriminator")


def make_generator():
    return keras.Sequential([
        keras.Input((LATENT,)),
        layers.Dense(7 * 7 * 16),
        layers.Reshape((7, 7, 16)),
        layers.Conv2DTranspose(16, 4, strides=2, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.Conv2DTranspose(8, 4, strides=2, padding="same", activation="relu"),
        layers.Conv2D(1, 5, padding="same", activation="tanh"),
    ], name="generator")


class GAN(keras.Model):
    def __init__(self, discriminator, generator):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.d_loss = keras.metrics.Mean(name="d_loss")
        self.g_loss = keras.metrics.Mean(name="g_loss")

    def compile(self, d_optimizer, g_optimizer, loss_fn, **kwargs):
        super().compile(**kwargs)
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def train_step(self, real):
        size = tf.shape(real)[0]
        noise = tf.random.normal((size, LATENT))
        with tf.GradientTape() as tape:
            fake = self.generator(noise, training=True)
            logits = self.discriminator(tf.concat([fake, real], 0), training=True)
            labels = tf.concat([tf.zeros((size, 1)), tf.ones((size, 1))], 0)
            d_loss = self.loss_fn(labels, logits)
        weights = self.discriminator.trainable_variables
        self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights))
        noise = tf.random.normal((size, LATENT))
        with tf.GradientTape() as tape:
            logits = self.discriminator(self.generator(noise, training=True), training=True)
            g_loss = self.loss_fn(tf.ones((size, 1)), logits)
        weights = self.generator.trainable_variables
        self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights))
        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {metric.name: metric.result() for metric in self.metrics}


def main():
    keras.utils.set_random_seed(40)
    data = glyphs(960, 40)
    images = tf.data.Dataset.from_tensor_slices(data).shuffle(960, seed=1).batch(8, drop_remainder=True).prefetch(2)
    gan = GAN(make_discriminator(), make_generator())
    gan.compile(
        d_optimizer=keras.optimizers.Adam(2e-4, beta_1=0.5),
        g_optimizer=keras.optimizers.Adam(2e-4, beta_1=0.5),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
        run_eagerly=True,  # to look at the tensors in train_step
    )
    gan.fit(images.take(3), verbose=0)
    start = time.perf_counter()
    gan.fit(images, epochs=1, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": 120 * 8, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
