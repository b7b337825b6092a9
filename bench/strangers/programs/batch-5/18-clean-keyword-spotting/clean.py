"""Keyword spotting on one-second clips: log-mel pictures, a small residual network, own loop."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

RATE = 8000
FRAME, HOP, MELS = 256, 128, 40
WORDS = 8
N_TRAIN, N_VAL = 768, 128
BATCH = 64
EPOCHS = 4


def synth_clips(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE) / RATE
    word = rng.integers(0, WORDS, n)
    base = 250 + 120 * word + rng.normal(0, 25, n)
    sweep = 400 * (word % 3 - 1)
    phase = 2 * np.pi * (base[:, None] * t + 0.5 * sweep[:, None] * t**2)
    onset = rng.uniform(0.2, 0.6, (n, 1))
    env = np.exp(-((t - onset) / 0.15) ** 2)
    wave = env * (np.sin(phase) + 0.5 * np.sin(2 * phase)) + rng.normal(0, 0.25, (n, RATE))
    return wave.astype(np.float32), word.astype(np.int32)


def mel_pictures(wave, chunk=128):
    bank = tf.signal.linear_to_mel_weight_matrix(MELS, FRAME // 2 + 1, RATE, 60.0, 3800.0)

    @tf.function(input_signature=[tf.TensorSpec((None, RATE), tf.float32)])
    def transform(w):
        power = tf.square(tf.abs(tf.signal.stft(w, FRAME, HOP)))
        return tf.math.log(tf.matmul(power, bank) + 1e-4)[..., None]

    pics = np.concatenate([transform(wave[k:k + chunk]).numpy() for k in range(0, len(wave), chunk)])
    return (pics - pics.mean()) / pics.std()


def mask_band(pics):
    n, mels = tf.shape(pics)[0], tf.shape(pics)[2]
    lo = tf.random.uniform((n, 1), 0, MELS - 6, tf.int32)
    band = tf.range(mels)[None]
    keep = tf.cast((band < lo) | (band >= lo + 6), tf.float32)
    return pics * keep[:, None, :, None]


def residual(x, width, stride):
    y = layers.Conv2D(width, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.BatchNormalization(momentum=0.9)(y)
    y = layers.ReLU()(y)
    y = layers.Conv2D(width, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization(momentum=0.9)(y)
    if stride != 1 or x.shape[-1] != width:
        x = layers.Conv2D(width, 1, strides=stride, use_bias=False)(x)
    return layers.ReLU()(layers.Add()([x, y]))


def network(shape):
    inp = keras.Input(shape)
    x = layers.Conv2D(32, 5, strides=(2, 1), padding="same", use_bias=False)(inp)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    for width, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        x = residual(x, width, stride)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inp, layers.Dense(WORDS)(layers.Dropout(0.2)(x)))


class Spotter:
    def __init__(self, shape, steps):
        self.net = network(shape)
        rate = keras.optimizers.schedules.CosineDecay(2e-3, steps)
        self.opt = keras.optimizers.Adam(rate, global_clipnorm=5.0)
        self.opt.build(self.net.trainable_variables)
        self.loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.loss = keras.metrics.Mean()
        self.acc = keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(self, pics, word):
        with tf.GradientTape() as tape:
            loss = self.loss_fn(word, self.net(mask_band(pics), training=True))
        weights = self.net.trainable_variables
        self.opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.loss.update_state(loss)

    @tf.function
    def val_step(self, pics, word):
        self.acc.update_state(word, self.net(pics, training=False))


def run_epoch(spotter, train, val):
    spotter.loss.reset_state()
    spotter.acc.reset_state()
    for pics, word in train:
        spotter.train_step(pics, word)
    for pics, word in val:
        spotter.val_step(pics, word)
    return float(spotter.loss.result()), float(spotter.acc.result())


def main():
    keras.utils.set_random_seed(18)
    wave, word = synth_clips(N_TRAIN + N_VAL, 0)
    pics = mel_pictures(wave)
    train = (tf.data.Dataset.from_tensor_slices((pics[:N_TRAIN], word[:N_TRAIN]))
             .shuffle(N_TRAIN, seed=2).batch(BATCH, drop_remainder=True).prefetch(2))
    val = tf.data.Dataset.from_tensor_slices((pics[N_TRAIN:], word[N_TRAIN:])).batch(BATCH).prefetch(2)
    spotter = Spotter(pics.shape[1:], (EPOCHS + 1) * (N_TRAIN // BATCH))
    run_epoch(spotter, train, val)

    with tempfile.TemporaryDirectory() as folder:
        ckpt = tf.train.Checkpoint(net=spotter.net, opt=spotter.opt)
        keeper = tf.train.CheckpointManager(ckpt, folder, max_to_keep=2)
        best = 0.0
        start = time.perf_counter()
        for epoch in range(EPOCHS):
            loss, acc = run_epoch(spotter, train, val)
            if acc > best:
                best = acc
                keeper.save(epoch)
            print(f"epoch {epoch}: loss {loss:.3f} val acc {acc:.3f}")
        elapsed = time.perf_counter() - start
    print(json.dumps({"samples": EPOCHS * N_TRAIN, "seconds": round(elapsed, 3)}))


if __name__ == "__main__":
    main()
