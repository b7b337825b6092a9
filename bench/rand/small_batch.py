"""Trains the segmentation network on pictures in memory, in batches of 2."""
import tensorflow as tf

import segnet

BATCH, STEPS = 2, 400
data = tf.data.Dataset.from_tensor_slices(segnet.pictures(2048))
data = data.shuffle(2048).repeat().map(segnet.prepared, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
segnet.train(segnet.network(), data, STEPS, BATCH)
