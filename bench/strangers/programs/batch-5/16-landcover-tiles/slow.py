"""Land cover segmentation from six-band satellite tiles kept as one archive per scene."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers

TILE = 64
BANDS = 6
CLASSES = 5
SCENES = 2
TILES_PER_SCENE = 240
BATCH = 12
EPOCHS = 2


def smooth_noise(rng, n, cells):
    coarse = rng.normal(0, 1, (n, cells, cells))
    k = TILE // cells
    fine = np.repeat(np.repeat(coarse, k, 1), k, 2)
    for axis in (1, 2):
        fine = (np.roll(fine, 2, axis) + fine + np.roll(fine, -2, axis)) / 3
    return fine


def simulate_scene(n, seed):
    rng = np.random.default_rng(seed)
    terrain = np.stack([smooth_noise(rng, n, c) for c in (4, 8, 8, 16, 4)], -1)
    cover = terrain.argmax(-1).astype(np.uint8)
    spectra = np.random.default_rng(99).integers(400, 6000, (CLASSES, BANDS))
    haze = 300 * smooth_noise(rng, n, 4)[..., None]
    bands = spectra[cover] + haze + rng.normal(0, 250, cover.shape + (BANDS,))
    return np.clip(bands, 0, 10_000).astype(np.uint16), cover


def write_scenes(folder):
    paths = []
    for k in range(SCENES):
        bands, cover = simulate_scene(TILES_PER_SCENE, seed=k)
        path = os.path.join(folder, f"scene_{k:02d}.npz")
        np.savez_compressed(path, bands=bands, cover=cover)
        paths.append(path)
    return paths


class TileSequence(keras.utils.PyDataset):
    def __init__(self, paths, batch, seed, **kw):
        super().__init__(**kw)
        self.scenes = [np.load(p, mmap_mode="r") for p in paths]
        self.batch = batch
        self.rng = np.random.default_rng(seed)
        self._reorder()

    def _reorder(self):
        plan = []
        for s in range(len(self.scenes)):
            order = self.rng.permutation(TILES_PER_SCENE)
            plan += [(s, np.sort(order[k:k + self.batch]))
                     for k in range(0, TILES_PER_SCENE - self.batch + 1, self.batch)]
        self.plan = [plan[k] for k in self.rng.permutation(len(plan))]

    def __len__(self):
        return len(self.plan)

    def __getitem__(self, k):
        s, rows = self.plan[k]
        scene = self.scenes[s]
        x = scene["bands"][rows].astype(np.float32) / 10_000.0
        y = scene["cover"][rows].astype(np.int32)
        if self.rng.random() < 0.5:
            x, y = x[:, :, ::-1], y[:, :, ::-1]
        return x, y

    def on_epoch_end(self):
        self._reorder()


def conv_block(x, width):
    for _ in range(2):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.ReLU()(x)
    return x


def small_unet():
    inp = keras.Input((TILE, TILE, BANDS))
    a = conv_block(inp, 12)
    b = conv_block(layers.MaxPooling2D()(a), 24)
    c = conv_block(layers.MaxPooling2D()(b), 32)
    u = layers.Concatenate()([layers.UpSampling2D()(c), b])
    u = conv_block(u, 24)
    u = layers.Concatenate()([layers.UpSampling2D()(u), a])
    u = conv_block(u, 12)
    return keras.Model(inp, layers.Conv2D(CLASSES, 1)(u))


class EpochTimes(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.durations = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.durations.append(time.perf_counter() - self.t0)


def train(folder):
    data = TileSequence(write_scenes(folder), BATCH, seed=3)
    model = small_unet()
    model.compile(
        optimizer=keras.optimizers.AdamW(2e-3, weight_decay=1e-4),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["sparse_categorical_accuracy"],
    )
    times = EpochTimes()
    hist = model.fit(data, epochs=EPOCHS, callbacks=[times], verbose=0)
    print("pixel accuracy", [round(v, 3) for v in hist.history["sparse_categorical_accuracy"]])
    steady = times.durations[1:]
    return len(data) * BATCH * len(steady), sum(steady)


def main():
    keras.utils.set_random_seed(21)
    with tempfile.TemporaryDirectory() as folder:
        samples, seconds = train(folder)
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
