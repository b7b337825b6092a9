"""2-D organ segmentation on axial CT slices; cases come as .npz archives, one per patient."""
import glob
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import keras
from keras import layers

CASES = 8
DEPTH = 72
SIZE = 160
CROP = 96
BATCH = 8
EPOCHS = 1


def phantom(rng):
    z, y, x = np.mgrid[0:DEPTH, 0:SIZE, 0:SIZE].astype(np.float32)
    vol = np.full((DEPTH, SIZE, SIZE), -900, np.float32)
    body = ((y - SIZE / 2) / 70) ** 2 + ((x - SIZE / 2) / 60) ** 2 < 1
    vol[body] = 40
    cz, cy, cx = rng.uniform(25, 45), rng.uniform(65, 95), rng.uniform(65, 95)
    r = rng.uniform(18, 28)
    organ = (((z - cz) / 1.2) ** 2 + (y - cy) ** 2 + (x - cx) ** 2) < r * r
    vol[organ] = 110
    vol += rng.integers(-24, 25, size=vol.shape)
    return vol.astype(np.int16), organ.astype(np.uint8)


def export_cases(folder):
    rng = np.random.default_rng(5)
    for i in range(CASES):
        ct, seg = phantom(rng)
        np.savez_compressed(os.path.join(folder, "case_%04d.npz" % i), ct=ct, seg=seg)
    return sorted(glob.glob(os.path.join(folder, "case_*.npz")))


class SliceDataset(keras.utils.PyDataset):
    """Random axial slices, windowed to soft tissue and cropped around the centre."""

    def __init__(self, paths, batch_size, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.paths = paths
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)
        self.index = [(c, z) for c in range(len(paths)) for z in range(4, DEPTH - 4, 2)]
        self.on_epoch_end()

    def __len__(self):
        return len(self.index) // self.batch_size

    def on_epoch_end(self):
        self.rng.shuffle(self.index)

    def read_slice(self, case, z):
        with np.load(self.paths[case]) as archive:
            return archive["ct"][z], archive["seg"][z]

    def __getitem__(self, i):
        lo = (SIZE - CROP) // 2
        images = np.empty((self.batch_size, CROP, CROP, 1), np.float32)
        masks = np.empty((self.batch_size, CROP, CROP, 1), np.float32)
        for k, (case, z) in enumerate(self.index[i * self.batch_size:(i + 1) * self.batch_size]):
            ct, seg = self.read_slice(case, z)
            ct = ct[lo:lo + CROP, lo:lo + CROP]
            images[k, ..., 0] = (np.clip(ct, -160, 240) + 160) / 400.0
            masks[k, ..., 0] = seg[lo:lo + CROP, lo:lo + CROP]
        return images, masks


def conv_block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


def unet():
    inputs = keras.Input((CROP, CROP, 1))
    d1 = conv_block(inputs, 8)
    d2 = conv_block(layers.MaxPooling2D()(d1), 16)
    mid = conv_block(layers.MaxPooling2D()(d2), 32)
    u2 = conv_block(layers.Concatenate()([layers.UpSampling2D()(mid), d2]), 16)
    u1 = conv_block(layers.Concatenate()([layers.UpSampling2D()(u2), d1]), 8)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(u1))


def main():
    keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = export_cases(folder)
        train = SliceDataset(paths, BATCH, seed=9)
        model = unet()
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", jit_compile=False)
        warm = SliceDataset(paths[:1], BATCH, seed=1)
        model.fit(warm, epochs=1, verbose=0)
        start = time.perf_counter()
        hist = model.fit(train, epochs=EPOCHS, verbose=0)
        seconds = time.perf_counter() - start
    print("loss", ["%.4f" % v for v in hist.history["loss"]])
    print(json.dumps({"samples": EPOCHS * len(train) * BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
