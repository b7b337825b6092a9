"""Keyword spotting on one-second clips stored in npz shards, Keras fit with a PyDataset."""
import gc
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

RATE = 16_000
KEYWORDS = 8
SHARDS = 4
CLIPS_PER_SHARD = 288
BATCH = 32
FRAME, HOP, MELS = 512, 320, 40
EPOCHS = 2


def write_shards(folder, rng):
    """int16 clips of one second: a two-tone keyword, room noise, a random start."""
    t = np.arange(RATE, dtype=np.float32) / RATE
    paths = []
    for s in range(SHARDS):
        label = rng.integers(0, KEYWORDS, CLIPS_PER_SHARD)
        start = rng.uniform(0.0, 0.4, (CLIPS_PER_SHARD, 1)).astype(np.float32)
        f1 = (300.0 + 90.0 * label)[:, None].astype(np.float32)
        f2 = (1400.0 + 160.0 * ((label * 3) % KEYWORDS))[:, None].astype(np.float32)
        envelope = np.where(t > start, np.exp(-4.0 * (t - start)), 0.0)
        wave = envelope * (np.sin(2 * np.pi * f1 * t) + 0.6 * np.sin(2 * np.pi * f2 * t))
        wave = 6000.0 * wave + rng.normal(0.0, 300.0, wave.shape)
        path = os.path.join(folder, f"train-{s:03d}.npz")
        np.savez_compressed(path, wave=wave.astype(np.int16), label=label.astype(np.int32))
        paths.append(path)
    return paths


def mel_matrix():
    edges = 700.0 * (10.0 ** (np.linspace(0.0, 2840.0, MELS + 2) / 2595.0) - 1.0)
    freq = np.fft.rfftfreq(FRAME, 1.0 / RATE)
    low, mid, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    up, down = (freq - low) / (mid - low), (high - freq) / (high - mid)
    return np.clip(np.minimum(up, down), 0.0, None).T.astype(np.float32)


class ShardedClips(keras.utils.PyDataset):
    def __init__(self, paths, batch_size, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)
        self.shards = [np.load(p) for p in paths]
        sizes = [len(s["label"]) for s in self.shards]
        self.index = np.array([(s, r) for s, n in enumerate(sizes) for r in range(n)])
        self.mel = mel_matrix()
        self.window = np.hanning(FRAME).astype(np.float32)
        self.on_epoch_end()

    def __len__(self):
        return len(self.index) // self.batch_size

    def on_epoch_end(self):
        self.rng.shuffle(self.index)

    def features(self, wave):
        x = wave.astype(np.float32) / 32768.0
        frames = np.lib.stride_tricks.sliding_window_view(x, FRAME, axis=1)[:, ::HOP]
        power = np.abs(np.fft.rfft(frames * self.window, axis=-1)).astype(np.float32) ** 2
        return np.log(power @ self.mel + 1e-6)[..., None]

    def __getitem__(self, i):
        picked = self.index[i * self.batch_size:(i + 1) * self.batch_size]
        waves, labels = [], []
        for s in np.unique(picked[:, 0]):
            rows = picked[picked[:, 0] == s, 1]
            waves.append(self.shards[s]["wave"][rows])
            labels.append(self.shards[s]["label"][rows])
        return self.features(np.concatenate(waves)), np.concatenate(labels)


class MemoryGuard(keras.callbacks.Callback):
    """Keeps the resident set of long runs flat on the small training boxes."""

    def on_train_batch_end(self, batch, logs=None):
        gc.collect()


class Clock(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.started = time.perf_counter()

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.started


def build_model():
    frames = 1 + (RATE - FRAME) // HOP
    model = keras.Sequential([
        keras.Input((frames, MELS, 1)),
        keras.layers.Conv2D(12, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(24, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(KEYWORDS),
    ])
    model.compile(optimizer=keras.optimizers.Adam(3e-3),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"], jit_compile=False)
    return model


def main():
    keras.utils.set_random_seed(13)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_shards(folder, np.random.default_rng(13))
        clips = ShardedClips(paths, BATCH)
        model = build_model()
        clock = Clock()
        model.fit(clips, epochs=EPOCHS, verbose=2, callbacks=[MemoryGuard(), clock])
    samples = (EPOCHS - 1) * len(clips) * BATCH
    print(json.dumps({"samples": samples, "seconds": round(clock.seconds, 3)}))


if __name__ == "__main__":
    main()
