"""Document similarity: attention-pooled sentence vectors, one document after another."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(24)
DOCS, SENTS, DIM = 512, 20, 48
STEPS = 100
WARMUP = 2

proj = keras.layers.Dense(DIM, activation="tanh")
score = keras.layers.Dense(1)
clf = keras.layers.Dense(5)
proj.build((None, DIM))
score.build((None, DIM))
clf.build((None, DIM))
params = proj.trainable_variables + score.trainable_variables + clf.trainable_variables
opt = keras.optimizers.Adam(1e-3)


def pool_document(doc):
    alpha = tf.nn.softmax(score(proj(doc)), axis=0)
    return tf.reduce_sum(alpha * doc, axis=0)


def pool(docs):
    return tf.map_fn(pool_document, docs)


@tf.function
def train_step(docs, topic):
    with tf.GradientTape() as tape:
        logits = clf(pool(docs))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=topic, logits=logits))
    grads = tape.gradient(loss, params)
    opt.apply_gradients(zip(grads, params))
    return loss


def main():
    rng = np.random.default_rng(24)
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            t0 = time.perf_counter()
        topic = rng.integers(0, 5, size=DOCS)
        docs = rng.normal(size=(DOCS, SENTS, DIM)).astype("float32")
        docs[np.arange(DOCS), 3, topic] += 6.0
        loss = float(train_step(tf.constant(docs), tf.constant(topic)))
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * DOCS, "seconds": seconds}))


main()
