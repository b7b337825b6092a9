"""Fine-grained leaf classifier, trained in short rounds on one fold of the image list."""
import argparse
import os
import shutil
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
T0 = time.perf_counter()

import cv2
import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIDE = 64
CLASSES = 6
FOLDS = 8


def make_images(folder, count, seed=11):
    rng = np.random.default_rng(seed)
    paths, labels = [], []
    for i in range(count):
        label = int(rng.integers(CLASSES))
        low = rng.integers(0, 256, (14, 14, 3), dtype=np.uint8)
        low[:, :, label % 3] = low[:, :, label % 3] // 3 + 40 * (label // 3)
        img = cv2.resize(low, (512, 512), interpolation=cv2.INTER_LINEAR)
        path = os.path.join(folder, f"leaf_{i:04d}.jpg")
        cv2.imwrite(path, img, [cv2.IMWRITE_JPEG_QUALITY, 92])
        paths.append(path)
        labels.append(label)
    return paths, labels


def load(path, label):
    img = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    img = tf.image.resize(tf.cast(img, tf.float32) / 255.0, (SIDE, SIDE))
    return img, label


def augment(img, label):
    img = tf.image.random_flip_left_right(img)
    img = tf.image.random_brightness(img, 0.1)
    return img, label


def fold_dataset(paths, labels, fold, batch, seed):
    ds = tf.data.Dataset.from_tensor_slices((paths, labels))
    ds = ds.map(load, num_parallel_calls=2)
    ds = ds.shard(FOLDS, fold)
    ds = ds.shuffle(32, seed=seed, reshuffle_each_iteration=True)
    ds = ds.map(augment, num_parallel_calls=1)
    return ds.repeat().batch(batch, drop_remainder=True).prefetch(2)


def conv(x, width, stride):
    x = layers.Conv2D(width, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation("relu")(x)


def make_model():
    image = keras.Input((SIDE, SIDE, 3))
    x = conv(image, 16, 2)
    for width, stride in ((32, 2), (32, 1), (64, 2), (64, 1)):
        y = conv(x, width, stride)
        if stride == 1:
            y = layers.Add()([x, y])
        x = y
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.1)(x)
    return keras.Model(image, layers.Dense(CLASSES)(x))


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.inside = 0.0

    def on_train_batch_begin(self, batch, logs=None):
        self._t = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.inside += time.perf_counter() - self._t
        self.steps += 1


def lr_for(round_number):
    return 2e-3 * 0.8 ** round_number


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--steps-per-round", type=int, default=24)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    keras.utils.set_random_seed(4)
    folder = tempfile.mkdtemp(prefix="leaf_")
    paths, labels = make_images(folder, 480)
    train = fold_dataset(paths, labels, 0, args.batch, seed=9)
    model = make_model()
    optimizer = keras.optimizers.Adam(lr_for(0))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    clock = Clock()

    history = []
    begin = time.perf_counter()
    for number in range(args.rounds):
        optimizer.learning_rate = lr_for(number)
        model.compile(optimizer, loss, metrics=["accuracy"])
        result = model.fit(train, steps_per_epoch=args.steps_per_round, epochs=1, shuffle=False, verbose=0,
                           callbacks=[clock])
        history.append(result.history["loss"][-1])
        print(f"round {number} loss {history[-1]:.3f} accuracy {result.history['accuracy'][-1]:.3f}")
    elapsed = time.perf_counter() - begin
    shutil.rmtree(folder)
    print(f"callback_clock={clock.inside:.2f}")
    print(f"steps={clock.steps} s_per_step={elapsed / clock.steps:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
