"""The segmentation network of the case studies, and its pictures: shapes on a noisy ground."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

SIDE, CLASSES = 96, 4


def pictures(count, seed=0):
    """uint8[count, side, side, 3] and the class of each pixel, uint8[count, side, side]."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (count, SIDE, SIDE, 3), dtype=np.uint8)
    masks = np.zeros((count, SIDE, SIDE), np.uint8)
    for image, mask in zip(images, masks):
        for kind in range(1, CLASSES):
            top, left = rng.integers(0, SIDE - 20, 2)
            height, width = rng.integers(8, 20, 2)
            image[top:top + height, left:left + width, kind - 1] += 120
            mask[top:top + height, left:left + width] = kind
    return images, masks


def prepared(image, mask):
    """One picture as the network takes it: float32 from -1 to 1, turned over at random."""
    image = tf.cast(image, tf.float32) / 127.5 - 1
    both = tf.concat([image, tf.cast(mask, tf.float32)[..., None]], -1)
    both = tf.image.random_flip_left_right(both)
    return both[..., :3], tf.cast(both[..., 3], tf.int32)


def conv(x, filters, size=3, stride=1):
    x = keras.layers.Conv2D(filters, size, stride, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization()(x)
    return keras.layers.ReLU()(x)


def network(size=3, channels=3):
    """An encoder and a decoder with skip connections. size: of the kernels of the last convolution."""
    inputs = keras.Input((SIDE, SIDE, channels))
    x, skips = conv(inputs[..., :3], 12, 5, stride=4), []
    for filters in (12, 24):
        x = conv(conv(x, filters), filters)
        skips.append(x)
        x = keras.layers.MaxPooling2D()(x)
    x = conv(conv(x, 32), 32)
    for filters, skip in zip((24, 12), reversed(skips)):
        x = keras.layers.UpSampling2D()(x)
        x = keras.layers.Concatenate()([x, skip])
        x = conv(x, filters)
    x = conv(x, 12, size)
    x = keras.layers.UpSampling2D(4, interpolation="bilinear")(keras.layers.Conv2D(CLASSES, 1)(x))
    model = keras.Model(inputs, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss)
    return model


class Clock(keras.callbacks.Callback):
    """Begins when the second epoch does: the first one makes the graph and fills the queues."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.began = time.perf_counter()


def train(model, data, steps, batch, callbacks=()):
    """Train for three epochs of the given steps; print the samples and seconds of the last two."""
    clock = Clock()
    model.fit(data, steps_per_epoch=steps, epochs=3, verbose=2, callbacks=[clock, *callbacks])
    print(json.dumps({"samples": 2 * steps * batch, "seconds": round(time.perf_counter() - clock.began, 3)}))
