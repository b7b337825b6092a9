"""Crack segmentation on concrete tiles: small U-Net, fit, PR-AUC as the selection metric."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

TILE = 256
CROP = 96
BATCH = 16
N_TRAIN = 96
N_VAL = 32
EPOCHS = 3


def draw_tile(rng):
    img = rng.normal(140, 12, size=(TILE, TILE, 3))
    img += rng.normal(0, 15, size=(1, 1, 3))
    mask = np.zeros((TILE, TILE, 1), np.uint8)
    for _ in range(rng.integers(4, 9)):
        y, x = rng.uniform(0, TILE, 2)
        angle = rng.uniform(0, 2 * np.pi)
        for _ in range(rng.integers(120, 320)):
            angle += rng.normal(0, 0.15)
            y, x = y + np.sin(angle), x + np.cos(angle)
            iy, ix = int(y), int(x)
            if not (1 <= iy < TILE - 2 and 1 <= ix < TILE - 2):
                break
            mask[iy - 1:iy + 2, ix - 1:ix + 2] = 1
    img -= 45 * mask
    return np.clip(img, 0, 255).astype(np.uint8), mask


def write_tiles(folder, n, seed):
    rng = np.random.default_rng(seed)
    os.makedirs(folder)
    for i in range(n):
        img, mask = draw_tile(rng)
        tf.io.write_file(f"{folder}/{i:04d}_img.png", tf.io.encode_png(img, compression=1))
        tf.io.write_file(f"{folder}/{i:04d}_mask.png", tf.io.encode_png(mask, compression=1))
    return sorted(tf.io.gfile.glob(f"{folder}/*_img.png"))


def read_pair(path):
    img = tf.io.decode_png(tf.io.read_file(path), channels=3)
    mask_path = tf.strings.regex_replace(path, "_img", "_mask")
    mask = tf.io.decode_png(tf.io.read_file(mask_path), channels=1)
    return tf.ensure_shape(img, (TILE, TILE, 3)), tf.ensure_shape(mask, (TILE, TILE, 1))


def photometric(img):
    img = tf.image.convert_image_dtype(img, tf.float32)
    img = tf.image.random_hue(img, 0.04)
    img = tf.image.random_saturation(img, 0.8, 1.2)
    img = tf.image.random_contrast(img, 0.8, 1.2)
    img = tf.image.random_brightness(img, 0.1)
    return tf.clip_by_value(img, 0.0, 1.0)


def geometric(img, mask):
    both = tf.concat([img, tf.cast(mask, img.dtype)], axis=-1)
    both = tf.image.random_flip_left_right(both)
    both = tf.image.random_crop(both, (CROP, CROP, 4))
    return both[..., :3], both[..., 3:]


def augment(img, mask):
    img = photometric(img)
    img, mask = geometric(img, mask)
    return img, tf.cast(mask, tf.float32)


def center(img, mask):
    o = (TILE - CROP) // 2
    img = tf.image.convert_image_dtype(img, tf.float32)
    return img[o:o + CROP, o:o + CROP], tf.cast(mask[o:o + CROP, o:o + CROP], tf.float32)


def pipeline(paths, training):
    ds = tf.data.Dataset.from_tensor_slices(paths)
    ds = ds.map(read_pair, num_parallel_calls=tf.data.AUTOTUNE).cache()
    if training:
        ds = ds.shuffle(len(paths))
        ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = ds.map(center, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def conv(x, f):
    x = layers.Conv2D(f, 3, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization(momentum=0.8)(x))


def build_unet():
    inp = keras.Input((CROP, CROP, 3))
    a = conv(inp, 8)
    b = conv(layers.MaxPooling2D()(a), 16)
    c = conv(layers.MaxPooling2D()(b), 32)
    x = conv(layers.Concatenate()([layers.UpSampling2D()(c), b]), 16)
    x = conv(layers.Concatenate()([layers.UpSampling2D()(x), a]), 8)
    return keras.Model(inp, layers.Conv2D(1, 1, activation="sigmoid")(x))


def pixel_metrics():
    # cracks are rare, we want the curve resolved well at both tails
    t = 1.0 / (1.0 + np.exp(-np.linspace(-7, 7, 160)))
    return [
        keras.metrics.AUC(curve="PR", thresholds=t.tolist(), name="pr_auc"),
        keras.metrics.BinaryIoU(target_class_ids=[1], name="iou"),
    ]


def main():
    keras.utils.set_random_seed(3)
    with tempfile.TemporaryDirectory() as tmp:
        train = pipeline(write_tiles(f"{tmp}/train", N_TRAIN, 0), True)
        val = pipeline(write_tiles(f"{tmp}/val", N_VAL, 1), False)
        model = build_unet()
        model.compile(keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=pixel_metrics())
        model.fit(train, validation_data=val, epochs=1, verbose=0)

        start = time.perf_counter()
        hist = model.fit(train, validation_data=val, epochs=EPOCHS, verbose=0)
        seconds = time.perf_counter() - start
    print({k: round(v[-1], 4) for k, v in hist.history.items()})
    print(json.dumps({"samples": EPOCHS * N_TRAIN, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
