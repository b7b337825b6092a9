"""Trains the segmentation network, and scores its pictures after every batch."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

import segnet

BATCH, STEPS = 64, 25


class Overlap(keras.callbacks.Callback):
    """Overlap of each class with its mask, on pictures that are set aside, so that one can watch it grow."""

    def __init__(self, images, masks):
        super().__init__()
        self.images, self.masks = images, masks
        self.history = []

    def on_train_batch_end(self, batch, logs=None):
        found = np.asarray(self.model(self.images, training=False)).argmax(-1)
        scores = []
        for one, mask in zip(found, self.masks):
            for kind in range(segnet.CLASSES):
                mine, theirs = one == kind, mask == kind
                scores.append((mine & theirs).sum() / max(1, (mine | theirs).sum()))
        self.history.append(float(np.mean(scores)))


images, masks = segnet.pictures(128, seed=1)
overlap = Overlap(images.astype("float32") / 127.5 - 1, masks)
data = tf.data.Dataset.from_tensor_slices(segnet.pictures(2048))
data = data.shuffle(2048).repeat().map(segnet.prepared, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
segnet.train(segnet.network(), data, STEPS, BATCH, [overlap])
