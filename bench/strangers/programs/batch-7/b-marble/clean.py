"""Surface defects on tiles: a small Keras CNN, images in memory, tf.data pipeline, the usual callbacks."""
import csv
import gc
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SIZE = 40
CLASSES = 6
BATCH = 32
STEPS = 40
EPOCHS = 8


def make_tiles(count, seed=0):
    """Grey noise with a bright stroke whose place and length give the class."""
    rng = np.random.default_rng(seed)
    images = rng.integers(60, 140, (count, SIZE, SIZE, 1), dtype=np.uint8)
    labels = rng.integers(0, CLASSES, count)
    for image, label in zip(images, labels):
        row, column = rng.integers(4, SIZE - 12, 2)
        if label % 2:
            image[row, column:column + 3 + label] = 230
        else:
            image[row:row + 4 + label, column] = 230
    return images, labels.astype(np.int32)


def augment(images, labels):
    images = tf.cast(images, tf.float32)
    images = tf.image.random_brightness(images, 12.0)
    padded = tf.pad(images, [[0, 0], [2, 2], [2, 2], [0, 0]], mode="REFLECT")
    images = tf.image.random_crop(padded, tf.shape(images))
    return images, labels


def training_data(images, labels):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.shuffle(len(images), seed=1).repeat().batch(BATCH, drop_remainder=True)
    return data.map(augment, num_parallel_calls=1).prefetch(2)


def held_out_data(images, labels):
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(4 * BATCH)
    return data.map(lambda x, y: (tf.cast(x, tf.float32), y)).cache().prefetch(1)


def conv_block(x, width, stride):
    x = layers.Conv2D(width, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build_model():
    inputs = keras.Input((SIZE, SIZE, 1))
    x = layers.Rescaling(1 / 127.5, offset=-1.0)(inputs)
    for width, stride in ((24, 1), (48, 2), (96, 2)):
        x = conv_block(x, width, stride)
        y = conv_block(x, width, 1)
        x = layers.Add()([x, y])
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, layers.Dense(CLASSES, name="kind")(x))


class Clock(keras.callbacks.Callback):
    """Steps and seconds after the first epoch."""

    def __init__(self):
        super().__init__()
        self.steps, self.started, self.seconds = 0, None, 0.0
        self.losses = []

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))
        if self.started is not None:
            self.steps += 1

    def on_epoch_end(self, epoch, logs=None):
        gc.collect()
        print(f"epoch {epoch} loss {logs['loss']:.4f} accuracy {logs['accuracy']:.3f}")
        if self.started is not None:
            self.seconds = time.perf_counter() - self.started


def learning_rate(epoch, current):
    return current if epoch < 6 else current * 0.3


def report(model, images, labels):
    guess = model.predict(images.astype(np.float32), batch_size=128, verbose=0).argmax(-1)
    table = np.zeros((CLASSES, CLASSES), int)
    np.add.at(table, (labels, guess), 1)
    return table


def main():
    begun = time.perf_counter()
    keras.utils.set_random_seed(0)
    images, labels = make_tiles(BATCH * STEPS)
    test_images, test_labels = make_tiles(256, seed=5)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.AdamW(2e-3, weight_decay=1e-4),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        best, log = os.path.join(folder, "best.weights.h5"), os.path.join(folder, "log.csv")
        model.fit(
            training_data(images, labels),
            steps_per_epoch=STEPS,
            epochs=EPOCHS,
            validation_data=held_out_data(test_images, test_labels),
            verbose=0,
            callbacks=[
                keras.callbacks.LearningRateScheduler(learning_rate),
                keras.callbacks.ModelCheckpoint(best, save_best_only=True, save_weights_only=True),
                keras.callbacks.CSVLogger(log),
                clock,
            ],
        )
        model.load_weights(best)
        with open(log) as rows:
            print("epochs logged:", sum(1 for _ in csv.reader(rows)) - 1)
    print(report(model, test_images, test_labels))
    wall = time.perf_counter() - begun
    print(json.dumps({"units": clock.steps, "seconds": round(clock.seconds, 4), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
