"""Masked-span pretraining on token ids: spans arrive as (start, stop) index pairs."""
import json
import time

import numpy as np
import tensorflow as tf
import keras

keras.utils.set_random_seed(4)
VOCAB, LEN, DIM = 800, 256, 32
BATCH = 64
SPANS = 12
STEPS = 60
WARMUP = 3

rng = np.random.default_rng(4)
emb = keras.layers.Embedding(VOCAB, DIM)
mix = keras.layers.Conv1D(DIM, 5, padding="same", activation="relu")
head = keras.layers.Dense(VOCAB)
net = keras.Sequential([keras.layers.Input((LEN,), dtype="int32"), emb, mix, head])
opt = keras.optimizers.Adam(1e-3)
MASK_ID = 1


def index_to_mask(starts, stops):
    mask = np.zeros((BATCH, LEN), dtype=bool)
    for b in range(BATCH):
        for pos in range(LEN):
            for s, e in zip(starts[b], stops[b]):
                if s <= pos < e:
                    mask[b, pos] = True
    return mask


@tf.function
def train_step(ids, positions, targets):
    with tf.GradientTape() as tape:
        h = mix(emb(ids))
        picked = tf.gather_nd(h, positions)
        loss = tf.reduce_mean(
            keras.losses.sparse_categorical_crossentropy(targets, head(picked), from_logits=True)
        )
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


def sample_batch():
    ids = rng.integers(2, VOCAB, size=(BATCH, LEN)).astype("int32")
    starts = rng.integers(0, LEN - 5, size=(BATCH, SPANS))
    stops = starts + rng.integers(1, 5, size=(BATCH, SPANS))
    return ids, starts, stops


def main():
    loss = None
    for step in range(STEPS + WARMUP):
        if step == WARMUP:
            t0 = time.perf_counter()
        ids, starts, stops = sample_batch()
        mask = index_to_mask(starts, stops)
        where = np.argwhere(mask)[:512].astype("int32")
        masked = np.where(mask, MASK_ID, ids)
        targets = ids[where[:, 0], where[:, 1]]
        loss = train_step(tf.constant(masked), tf.constant(where), tf.constant(targets))
    loss = float(loss)
    seconds = time.perf_counter() - t0
    print("loss", loss)
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
