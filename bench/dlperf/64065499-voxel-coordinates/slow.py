"""Occupancy network: random voxels of a scene are queried by flat index."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(13)
SHAPE = (48, 48, 32)
BATCH = 512
STEPS = 30
WARMUP = 2

occupied = np.zeros(SHAPE, "float32")
gx, gy, gz = np.meshgrid(*[np.linspace(-1, 1, s) for s in SHAPE], indexing="ij")
occupied[(gx**2 + gy**2 + gz**2) < 0.5] = 1.0
volume = tf.constant(occupied.reshape(-1))

net = keras.Sequential(
    [
        keras.layers.Input((3,)),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(1),
    ]
)
opt = keras.optimizers.Adam(1e-3)


def index_to_xyz(flat):
    coords = []
    for i in flat:
        z = i % SHAPE[2]
        y = (i // SHAPE[2]) % SHAPE[1]
        x = i // (SHAPE[1] * SHAPE[2])
        coords.append(tf.stack([x, y, z]))
    return tf.stack(coords)


@tf.function
def train_step(xyz, occ):
    scaled = tf.cast(xyz, tf.float32) / tf.constant(SHAPE, tf.float32) * 2.0 - 1.0
    with tf.GradientTape() as tape:
        logit = net(scaled, training=True)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=occ, logits=logit))
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


loss = None
for step in range(WARMUP + STEPS):
    if step == WARMUP:
        t0 = time.perf_counter()
    flat = tf.random.uniform([BATCH], maxval=int(np.prod(SHAPE)), dtype=tf.int32)
    xyz = index_to_xyz(flat)
    loss = train_step(xyz, tf.gather(volume, flat))
loss = float(loss)
seconds = time.perf_counter() - t0
print("loss", loss)
print(json.dumps({"samples": BATCH * STEPS, "seconds": seconds}))
