"""Node2vec-like training: for each node draw a neighbour, every node has its own degree."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(8)
NODES = 5000
DIM = 64
BATCH = 256
STEPS = 800
WARMUP = 3
MAXDEG = 40

rng = np.random.default_rng(8)
degree_np = rng.integers(1, MAXDEG + 1, size=NODES).astype("int32")
adjacency = tf.constant(rng.integers(0, NODES, size=(NODES, MAXDEG)).astype("int32"))
degree = tf.constant(degree_np)

emb = keras.layers.Embedding(NODES, DIM)
ctx = keras.layers.Embedding(NODES, DIM)
emb.build(None)
ctx.build(None)
opt = keras.optimizers.Adagrad(0.05)


def pick_slots(limits):
    """one integer below each entry of `limits`"""
    u = tf.random.uniform(tf.shape(limits))
    return tf.cast(u * tf.cast(limits, tf.float32), tf.int32)


@tf.function
def train_step(nodes, pos, neg):
    params = [emb.trainable_variables[0], ctx.trainable_variables[0]]
    with tf.GradientTape() as tape:
        a = emb(nodes)
        p = tf.reduce_sum(a * ctx(pos), axis=-1)
        n = tf.reduce_sum(a * ctx(neg), axis=-1)
        loss = tf.reduce_mean(tf.nn.softplus(-p) + tf.nn.softplus(n))
    opt.apply_gradients(zip(tape.gradient(loss, params), params))
    return loss


def run():
    loss = None
    for step in range(STEPS + WARMUP):
        if step == WARMUP:
            t0 = time.perf_counter()
        nodes = tf.random.uniform([BATCH], maxval=NODES, dtype=tf.int32)
        slots = pick_slots(tf.gather(degree, nodes))
        pos = tf.gather_nd(adjacency, tf.stack([nodes, slots], axis=1))
        neg = tf.random.uniform([BATCH], maxval=NODES, dtype=tf.int32)
        loss = train_step(nodes, pos, neg)
    loss = float(loss)
    return loss, time.perf_counter() - t0


loss, seconds = run()
print("loss", loss)
print(json.dumps({"samples": BATCH * STEPS, "seconds": seconds}))
