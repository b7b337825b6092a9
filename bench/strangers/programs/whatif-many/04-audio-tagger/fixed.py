"""Audio tagger: log-mel patches of street recordings, eight tags, trained on the small office server."""
import ctypes
import dataclasses
import gc
import json
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3


@dataclasses.dataclass
class Settings:
    batch: int = 24
    steps: int = 110
    warmup: int = 10
    lr: float = 1e-3
    mel_bins: int = 64
    frames: int = 96
    tags: int = 8
    floatx: str = "float32"
    collect_every: int = 0
    mmap_threshold: int = 1024 * 1024 * 1024
    trim_threshold: int = 1024 * 1024 * 1024


def limit_heap(cfg):
    """Hand freed memory back to the system, the server has many tenants."""
    libc = ctypes.CDLL("libc.so.6")
    if cfg.mmap_threshold:
        libc.mallopt(M_MMAP_THRESHOLD, cfg.mmap_threshold)
    if cfg.trim_threshold:
        libc.mallopt(M_TRIM_THRESHOLD, cfg.trim_threshold)


def make_clips(cfg, n=600, seed=2):
    rng = np.random.default_rng(seed)
    tags = (rng.random((n, cfg.tags)) < 0.25).astype(cfg.floatx)
    spec = rng.normal(0, 1, (n, cfg.frames, cfg.mel_bins, 1)).astype(cfg.floatx)
    for i in range(n):
        for t in np.flatnonzero(tags[i]):
            band = slice(t * 8, t * 8 + 6)
            at = rng.integers(0, cfg.frames - 20)
            spec[i, at:at + 20, band] += 1.5
    meta = [{"clip": i, "site": f"site-{i % 17}", "tags": list(np.flatnonzero(tags[i]))} for i in range(n)]
    return spec, tags, meta


class ClipFeed:
    def __init__(self, spec, tags, meta, batch, seed=3):
        self.spec, self.tags, self.meta, self.batch = spec, tags, meta, batch
        self.rng = np.random.default_rng(seed)
        self.by_site = {}

    def next(self):
        pick = self.rng.integers(0, len(self.spec), self.batch)
        for i in pick:
            site = self.meta[i]["site"]
            self.by_site[site] = self.by_site.get(site, 0) + 1
        return tf.constant(self.spec[pick]), tf.constant(self.tags[pick])


def build_model(cfg):
    inp = keras.Input((cfg.frames, cfg.mel_bins, 1))
    x = inp
    for filters in (8, 16, 32):
        x = layers.Conv2D(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("swish")(x)
        x = layers.AveragePooling2D(2)(x)
    x = layers.GlobalMaxPooling2D()(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.Model(inp, layers.Dense(cfg.tags)(x))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = build_model(cfg)
        self.optimizer = keras.optimizers.AdamW(cfg.lr)
        self.optimizer.build(self.model.trainable_variables)
        self.loss = keras.losses.BinaryCrossentropy(from_logits=True)
        self.steps_done = 0

    @tf.function
    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(x, training=True))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    def run(self, feed, steps):
        loss = None
        for _ in range(steps):
            loss = self.train_step(*feed.next())
            self.steps_done += 1
            if self.cfg.collect_every and self.steps_done % self.cfg.collect_every == 0:
                gc.collect()
        return float(loss)


def main():
    cfg = Settings()
    limit_heap(cfg)
    keras.config.set_floatx(cfg.floatx)
    keras.utils.set_random_seed(1)
    feed = ClipFeed(*make_clips(cfg), cfg.batch)
    trainer = Trainer(cfg)
    print("warm-up loss %.4f" % trainer.run(feed, cfg.warmup))
    t0 = time.perf_counter()
    loss = trainer.run(feed, cfg.steps)
    seconds = time.perf_counter() - t0
    busiest = max(feed.by_site, key=feed.by_site.get)
    print("loss %.4f, most clips from %s" % (loss, busiest))
    print(json.dumps({"samples": cfg.steps * cfg.batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
