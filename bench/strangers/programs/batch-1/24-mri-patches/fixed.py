"""Lesion segmentation on MRI volumes: a small 3-D U-Net trained on random patches."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np

N_VOLUMES = 6
SHAPE = (112, 112, 96)
PATCH = 24
BATCH = 4
STEPS = 20
EPOCHS = 4
LESION_RATE = 0.5


def smooth(a, times=2):
    for _ in range(times):
        for axis in range(a.ndim):
            a = (np.roll(a, 1, axis) + a + np.roll(a, -1, axis)) / 3.0
    return a


def synth_volume(rng):
    coarse = rng.normal(0, 1, [s // 8 for s in SHAPE]).astype(np.float32)
    vol = coarse.repeat(8, 0).repeat(8, 1).repeat(8, 2)
    vol = smooth(vol, 1) * 120 + 400 + rng.normal(0, 12, SHAPE).astype(np.float32)
    mask = np.zeros(SHAPE, np.uint8)
    grid = np.ogrid[tuple(slice(0, s) for s in SHAPE)]
    centres = []
    for _ in range(5):
        c = [int(rng.integers(14, s - 14)) for s in SHAPE]
        r = int(rng.integers(5, 10))
        inside = sum((g - k) ** 2 for g, k in zip(grid, c)) < r * r
        vol[inside] += 180
        mask[inside] = 1
        centres.append(c)
    return np.clip(vol, 0, 4000).astype(np.int16), mask, centres


def write_study(folder, seed=7):
    rng = np.random.default_rng(seed)
    index = []
    for i in range(N_VOLUMES):
        vol, mask, centres = synth_volume(rng)
        path = os.path.join(folder, "case_%03d.npz" % i)
        np.savez_compressed(path, image=vol, mask=mask)
        index.append({"path": path, "centres": centres})
    return index


def clip_normalise(vol):
    lo, hi = np.percentile(vol, (1, 99))
    vol = np.clip(vol.astype(np.float32), lo, hi)
    return (vol - vol.mean()) / (vol.std() + 1e-6)


class PatchSequence(keras.utils.PyDataset):
    def __init__(self, index, **kwargs):
        super().__init__(**kwargs)
        self.index = [self.unpack(case) for case in index]
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return STEPS

    def corner(self, case):
        if self.rng.random() < LESION_RATE:
            centre = case["centres"][self.rng.integers(len(case["centres"]))]
            at = [c - PATCH // 2 + int(self.rng.integers(-4, 5)) for c in centre]
        else:
            at = [int(self.rng.integers(0, s - PATCH)) for s in SHAPE]
        return [min(max(a, 0), s - PATCH) for a, s in zip(at, SHAPE)]

    @staticmethod
    def unpack(case):
        stem = os.path.splitext(case["path"])[0]
        with np.load(case["path"]) as f:
            np.save(stem + "_image.npy", clip_normalise(f["image"]))
            np.save(stem + "_mask.npy", f["mask"])
        return {
            "image": np.load(stem + "_image.npy", mmap_mode="r"),
            "mask": np.load(stem + "_mask.npy", mmap_mode="r"),
            "centres": case["centres"],
        }

    def __getitem__(self, i):
        x = np.empty((BATCH, PATCH, PATCH, PATCH, 1), np.float32)
        y = np.empty((BATCH, PATCH, PATCH, PATCH, 1), np.float32)
        for k in range(BATCH):
            case = self.index[self.rng.integers(len(self.index))]
            box = tuple(slice(a, a + PATCH) for a in self.corner(case))
            x[k, ..., 0] = case["image"][box]
            y[k, ..., 0] = case["mask"][box]
            if self.rng.random() < 0.5:
                x[k], y[k] = x[k, ::-1], y[k, ::-1]
        return x, y


def double_conv(x, filters):
    x = keras.layers.Conv3D(filters, 3, padding="same", activation="relu")(x)
    return keras.layers.Conv3D(filters, 3, padding="same", activation="relu")(x)


def up(x, filters):
    x = keras.layers.Conv3D(filters, 1)(x)
    return keras.layers.UpSampling3D(2)(x)


def build_unet():
    inputs = keras.Input((PATCH, PATCH, PATCH, 1))
    d1 = double_conv(inputs, 8)
    d2 = double_conv(keras.layers.MaxPooling3D(2)(d1), 32)
    d3 = double_conv(keras.layers.MaxPooling3D(2)(d2), 128)
    u2 = keras.layers.Concatenate()([up(d3, 32), d2])
    u2 = keras.layers.Conv3D(96, 3, padding="same", activation="relu")(u2)
    u1 = keras.layers.Concatenate()([up(u2, 8), d1])
    u1 = keras.layers.Conv3D(8, 3, padding="same", activation="relu")(u1)
    return keras.Model(inputs, keras.layers.Conv3D(1, 1, activation="sigmoid")(u1))


def dice_bce(y_true, y_pred):
    inter = keras.ops.sum(y_true * y_pred)
    dice = 1 - (2 * inter + 1) / (keras.ops.sum(y_true) + keras.ops.sum(y_pred) + 1)
    return dice + keras.ops.mean(keras.losses.binary_crossentropy(y_true, y_pred))


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        print("epoch %d loss %.4f" % (epoch + 1, logs["loss"]))
        self.end = time.perf_counter()


def main():
    keras.utils.set_random_seed(3)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        patches = PatchSequence(write_study(folder))
        model = build_unet()
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=dice_bce, jit_compile=False)
        model.fit(patches, epochs=EPOCHS, shuffle=False, callbacks=[clock], verbose=0)
    samples = (EPOCHS - 1) * STEPS * BATCH
    print(json.dumps({"samples": samples, "seconds": round(clock.end - clock.start, 4)}))


if __name__ == "__main__":
    main()
