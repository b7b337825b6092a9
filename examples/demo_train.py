"""Trains a small classifier on photographs of fruit, as many a project does: JPEG files, augmentation, fit.

The photographs are drawn here, so that the example needs no download.
"""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

COUNT = 1200
PHOTO = 128
SIDE = 80
BATCH = 32
EPOCHS = 6


def draw_photographs(folder: pathlib.Path) -> None:
    """Round fruit of three colours on noisy tables."""
    rng = np.random.default_rng(1)
    u, v = np.meshgrid(np.linspace(-1, 1, PHOTO), np.linspace(-1, 1, PHOTO))
    colours = np.array([[200, 30, 40], [240, 150, 30], [70, 160, 60]])
    for index in range(COUNT):
        kind = index % 3
        x, y, radius = rng.uniform(-0.3, 0.3, 2).tolist() + [rng.uniform(0.3, 0.6)]
        inside = ((u - x) ** 2 + (v - y) ** 2 < radius**2)[..., None]
        picture = np.where(inside, colours[kind], 120) + rng.normal(0, 25, (PHOTO, PHOTO, 3))
        jpeg = tf.io.encode_jpeg(np.clip(picture, 0, 255).astype("uint8"))
        (folder / f"{kind}_{index}.jpg").write_bytes(jpeg.numpy())


def augment(picture):
    """Random crop, flip, contrast and a little blur."""
    top, left = np.random.randint(0, PHOTO - SIDE, 2)
    picture = picture[top : top + SIDE, left : left + SIDE].astype("float32") / 255
    if np.random.rand() < 0.5:
        picture = picture[:, ::-1]
    low, high = np.percentile(picture, (1, 99))
    picture = np.clip((picture - low) / (high - low + 1e-6), 0, 1)
    blurred = sum(np.roll(picture, (i, j), (0, 1)) for i in range(-2, 3) for j in range(-2, 3)) / 25
    return (0.6 * picture + 0.4 * blurred).astype("float32")


def load(path):
    """One file as an augmented picture with its label."""
    picture = tf.io.decode_jpeg(tf.io.read_file(path), 3)
    picture = tf.numpy_function(augment, [picture], tf.float32)
    picture.set_shape((SIDE, SIDE, 3))
    name = tf.strings.split(path, "/")[-1]
    return picture, tf.strings.to_number(tf.strings.substr(name, 0, 1), tf.int32)


def make_dataset(folder: pathlib.Path) -> tf.data.Dataset:
    """Shuffled, augmented, batched."""
    files = tf.data.Dataset.list_files(str(folder / "*.jpg"), seed=1)
    return files.map(load).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def build_model() -> tf.keras.Model:
    """Three convolutions and a dense top."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((SIDE, SIDE, 3)),
            layers.Conv2D(8, 3, strides=3, activation="relu"),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.Conv2D(24, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main() -> None:
    """Draw, train."""
    tf.keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        draw_photographs(folder)
        build_model().fit(make_dataset(folder), epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
