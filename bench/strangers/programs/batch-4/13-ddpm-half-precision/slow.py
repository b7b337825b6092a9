"""Denoising diffusion model for small pictures of shapes (24 x 24, one channel), trained with fit()."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE = 24
COUNT = 320
BATCH = 64
EPOCHS = 4
T = 200
WIDTHS = (16, 32)

keras.mixed_precision.set_global_policy("mixed_float16")


def draw_shapes(count, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    images = np.zeros((count, SIZE, SIZE, 1), np.float32)
    for i in range(count):
        cx, cy = rng.uniform(7, SIZE - 7, 2)
        radius = rng.uniform(3, 7)
        if rng.random() < 0.5:
            inside = (xx - cx) ** 2 + (yy - cy) ** 2 < radius ** 2
        else:
            inside = np.maximum(np.abs(xx - cx), np.abs(yy - cy)) < radius
        images[i, ..., 0] = np.where(inside, 1.0, -1.0)
    return images


def cosine_schedule(steps):
    t = np.linspace(0, 1, steps + 1)
    f = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2
    return np.clip(f[1:] / f[0], 1e-4, 0.9999).astype(np.float32)


def time_embedding(dim=32):
    half = dim // 2
    freqs = np.exp(-np.log(10000.0) * np.arange(half) / half)
    angles = np.arange(T)[:, None] * freqs[None]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def res_block(x, emb, width):
    skip = x if x.shape[-1] == width else layers.Conv2D(width, 1)(x)
    h = layers.Conv2D(width, 3, padding="same", activation="swish")(x)
    shift = layers.Reshape((1, 1, width))(layers.Dense(width)(emb))
    h = layers.Add()([h, shift])
    h = layers.Conv2D(width, 3, padding="same", activation="swish")(h)
    return layers.Add()([h, skip])


def build_unet():
    image = keras.Input((SIZE, SIZE, 1))
    emb_in = keras.Input((32,))
    emb = layers.Dense(64, activation="swish")(emb_in)
    x = layers.Conv2D(WIDTHS[0], 3, padding="same")(image)
    skips = []
    for width in WIDTHS:
        x = res_block(x, emb, width)
        skips.append(x)
        x = layers.AveragePooling2D(2)(x)
    x = res_block(x, emb, WIDTHS[-1])
    for width in reversed(WIDTHS):
        x = layers.UpSampling2D(2)(x)
        x = layers.Concatenate()([x, skips.pop()])
        x = res_block(x, emb, width)
    noise = layers.Conv2D(1, 3, padding="same", dtype="float32")(x)
    return keras.Model([image, emb_in], noise, name="unet")


class Diffusion(keras.Model):
    def __init__(self, unet, **kwargs):
        super().__init__(**kwargs)
        self.unet = unet
        self.alpha_bar = tf.constant(cosine_schedule(T))
        self.emb_table = tf.constant(time_embedding())
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, inputs, training=False):
        return self.unet(inputs, training=training)

    def diffuse(self, images):
        n = tf.shape(images)[0]
        t = tf.random.uniform((n,), 0, T, dtype=tf.int32)
        noise = tf.random.normal(tf.shape(images))
        a = tf.reshape(tf.gather(self.alpha_bar, t), (-1, 1, 1, 1))
        noisy = tf.sqrt(a) * images + tf.sqrt(1.0 - a) * noise
        return noisy, noise, tf.gather(self.emb_table, t)

    def train_step(self, images):
        noisy, noise, emb = self.diffuse(images)
        with tf.GradientTape() as tape:
            guess = self.unet([noisy, emb], training=True)
            loss = tf.reduce_mean(tf.square(noise - tf.cast(guess, tf.float32)))
            scaled = self.optimizer.scale_loss(loss)
        grads = tape.gradient(scaled, self.unet.trainable_variables)
        self.optimizer.apply(grads, self.unet.trainable_variables)
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


class Clock(keras.callbacks.Callback):
    """Measures from the end of the first epoch."""

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter()
        if epoch == 0:
            self.start = now
        self.seconds = now - self.start


def main():
    keras.utils.set_random_seed(11)
    images = draw_shapes(COUNT)
    data = (tf.data.Dataset.from_tensor_slices(images).shuffle(COUNT, seed=2)
            .batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE))
    model = Diffusion(build_unet())
    model.compile(optimizer=keras.optimizers.Adam(2e-3), jit_compile=False)
    clock = Clock()
    history = model.fit(data, epochs=EPOCHS, callbacks=[clock], verbose=2)
    print("last loss", round(history.history["loss"][-1], 4))
    steps = (EPOCHS - 1) * (COUNT // BATCH)
    print(json.dumps({"samples": steps * BATCH, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
