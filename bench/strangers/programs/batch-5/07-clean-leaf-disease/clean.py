"""Leaf disease classifier: residual CNN on 56 x 56 crops from the greenhouse cameras."""
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE, CLASSES, BATCH = 56, 8, 32
MEAN = np.array([0.31, 0.46, 0.22], "float32")


def render_leaves(n, seed):
    """Green discs with lesions; lesion colour, count and radius depend on the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, n)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype("float32") / SIZE - 0.5
    images = np.empty((n, SIZE, SIZE, 3), "float32")
    for i, label in enumerate(labels):
        leaf = (xx ** 2 / 0.16 + yy ** 2 / rng.uniform(0.08, 0.2)) < 1
        image = np.where(leaf[..., None], [0.25, 0.55, 0.18], [0.45, 0.40, 0.30])
        colour = [0.55, 0.35, 0.1] if label % 2 else [0.75, 0.72, 0.3]
        for _ in range(2 + label):
            cx, cy = rng.uniform(-0.3, 0.3, 2)
            radius = 0.03 + 0.02 * (label // 3)
            spot = (xx - cx) ** 2 + (yy - cy) ** 2 < radius ** 2
            image[spot & leaf] = colour
        images[i] = image
    images += 0.04 * rng.standard_normal(images.shape, dtype="float32")
    return images - MEAN, labels.astype("int32")


def augment(images, labels):
    images = tf.image.random_flip_left_right(images)
    images = tf.pad(images, [[0, 0], [4, 4], [4, 4], [0, 0]])
    images = tf.image.random_crop(images, [BATCH, SIZE, SIZE, 3])
    return images, labels


def make_dataset(images, labels, training):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        ds = ds.shuffle(len(images), seed=2)
    ds = ds.batch(BATCH, drop_remainder=True)
    if training:
        ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)


def conv(filters, size, stride=1, init="he_normal"):
    return layers.Conv2D(filters, size, strides=stride, padding="same", kernel_initializer=init)


def residual(x, filters, stride):
    """Residual block without normalisation; its branch starts at zero (as in SkipInit)."""
    shortcut = x
    x = layers.ReLU()(conv(filters, 3, stride)(x))
    x = conv(filters, 3, init="zeros")(x)
    if stride != 1 or shortcut.shape[-1] != filters:
        shortcut = conv(filters, 1, stride)(shortcut)
    return layers.ReLU()(layers.Add()([x, shortcut]))


def build_model():
    inputs = keras.Input((SIZE, SIZE, 3))
    x = layers.ReLU()(conv(32, 5, stride=2)(inputs))
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1)):
        x = residual(x, filters, stride)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.3)(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(x))


class EpochClock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.starts = []

    def on_epoch_begin(self, epoch, logs=None):
        self.starts.append(time.perf_counter())

    def on_epoch_end(self, epoch, logs=None):
        self.last = time.perf_counter()
        print(f"epoch {epoch}: " + "  ".join(f"{k} {v:.4f}" for k, v in logs.items()))


def main(n_train=480, n_val=96, epochs=3):
    keras.utils.set_random_seed(14)
    train = make_dataset(*render_leaves(n_train, 1), training=True)
    val = make_dataset(*render_leaves(n_val, 2), training=False)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    clock = EpochClock()
    with tempfile.TemporaryDirectory() as tmp:
        model.fit(
            train, validation_data=val, epochs=epochs, verbose=0,
            callbacks=[
                keras.callbacks.ModelCheckpoint(os.path.join(tmp, "best.weights.h5"),
                                                save_best_only=True, save_weights_only=True),
                keras.callbacks.CSVLogger(os.path.join(tmp, "history.csv")),
                keras.callbacks.ReduceLROnPlateau(patience=4),
                clock,
            ],
        )
    print(json.dumps({"samples": n_train * (epochs - 1),
                      "seconds": round(clock.last - clock.starts[1], 4)}))


if __name__ == "__main__":
    main()
