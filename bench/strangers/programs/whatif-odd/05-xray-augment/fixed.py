"""Fracture detection on X-ray crops: rotation, shear and contrast augmentation in tf.data, Keras fit."""
import json
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE = 72
BATCH = 16
IMAGES = 960
EPOCHS = 10


def make_xrays(seed=27):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype("float32") / SIZE
    x = np.empty((IMAGES, SIZE, SIZE), "float32")
    y = rng.integers(0, 2, IMAGES).astype("float32")
    for i in range(IMAGES):
        centre = 0.5 + 0.1 * np.sin(3 * yy + rng.uniform(0, 3))
        bone = np.exp(-((xx - centre) / 0.15) ** 2)
        if y[i]:
            at = rng.uniform(0.25, 0.75)
            bone *= 1 - 0.7 * np.exp(-((yy - at - 0.4 * (xx - 0.5)) / 0.02) ** 2)
        x[i] = bone + rng.normal(0, 0.08, bone.shape)
    return x, y


def affine(side):
    """Row of a random rotation, shear and zoom about the centre, as the projective transform op wants it."""
    angle = tf.random.uniform((), -0.3, 0.3)
    shear = tf.random.uniform((), -0.1, 0.1)
    zoom = tf.random.uniform((), 0.9, 1.15)
    c, s = tf.cos(angle) / zoom, tf.sin(angle) / zoom
    a, b, d, e = c, c * shear - s, s, s * shear + c
    mid = (side - 1) / 2
    row = [a, b, mid - a * mid - b * mid, d, e, mid - d * mid - e * mid, 0.0, 0.0]
    return tf.stack(row)[None]


def warp(img):
    side = img.shape[0]
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=img[None],
        transforms=affine(float(side)),
        output_shape=[side, side],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )[0]


def contrast(img):
    return img * tf.random.uniform((), 0.8, 1.25) + tf.random.uniform((), -0.1, 0.1)


def augment(img, label):
    return contrast(warp(img)), label


def make_dataset(x, y):
    ds = tf.data.Dataset.from_tensor_slices((x[..., None], y))
    ds = ds.shuffle(IMAGES, seed=3)
    ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def build_model():
    inp = keras.Input((SIZE, SIZE, 1))
    x = inp
    for filters in (12, 24, 32):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D(2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(32, activation="relu")(x)
    return keras.Model(inp, layers.Dense(1, activation="sigmoid")(x))


class EpochSeconds(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.values.append(time.perf_counter() - self.t0)


def main():
    keras.utils.set_random_seed(28)
    x, y = make_xrays()
    data = make_dataset(x, y)
    model = build_model()
    model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy", metrics=["accuracy"])
    timer = EpochSeconds()
    hist = model.fit(data, epochs=EPOCHS, callbacks=[timer], verbose=0)
    print("accuracy", [round(a, 3) for a in hist.history["accuracy"]])
    samples = (EPOCHS - 1) * len(data) * BATCH
    print(json.dumps({"samples": samples, "seconds": round(sum(timer.values[1:]), 3)}))


if __name__ == "__main__":
    main()
