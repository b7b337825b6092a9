"""Intent classifier on support tickets: small transformer encoder, custom training loop."""
import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers

VOCAB = 6000
CLASSES = 24
DIM = 64
HEADS = 4
BATCH = 24
MAX_LEN = 80


def make_tickets(n, seed):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.gamma(4.0, 9.0, size=n).astype(int) + 8, 8, MAX_LEN)
    labels = rng.integers(0, CLASSES, size=n)
    tickets = []
    for length, label in zip(lengths, labels):
        base = rng.integers(1, VOCAB, size=length)
        hot = rng.random(length) < 0.15
        base[hot] = 1 + label * 40 + rng.integers(0, 40, size=int(hot.sum()))
        tickets.append(base.astype(np.int32))
    return tickets, labels.astype(np.int32)


class EncoderBlock(layers.Layer):
    def __init__(self, dim, heads, **kw):
        super().__init__(**kw)
        self.att = layers.MultiHeadAttention(heads, dim // heads)
        self.n1 = layers.LayerNormalization(epsilon=1e-6)
        self.n2 = layers.LayerNormalization(epsilon=1e-6)
        self.up = layers.Dense(dim * 3, activation="gelu")
        self.down = layers.Dense(dim)

    def build(self, shape):
        self.att.build(shape, shape)
        self.n1.build(shape)
        self.n2.build(shape)
        self.up.build(shape)
        self.down.build((*shape[:-1], self.up.units))
        super().build(shape)

    def call(self, x, mask):
        h = self.n1(x)
        x = x + self.att(h, h, attention_mask=mask[:, None, :])
        return x + self.down(self.up(self.n2(x)))


class TicketModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.tok = layers.Embedding(VOCAB, DIM)
        self.pos = layers.Embedding(256, DIM)
        self.blocks = [EncoderBlock(DIM, HEADS) for _ in range(1)]
        self.out = layers.Dense(CLASSES)

    def call(self, tokens):
        mask = tf.not_equal(tokens, 0)
        x = self.tok(tokens) + self.pos(tf.range(tf.shape(tokens)[1]))[None]
        for block in self.blocks:
            x = block(x, mask)
        w = tf.cast(mask, x.dtype)[..., None]
        pooled = tf.reduce_sum(x * w, axis=1) / tf.reduce_sum(w, axis=1)
        return self.out(pooled)


def collate(rows):
    width = -(-max(len(r) for r in rows) // 32) * 32
    out = np.zeros((len(rows), width), np.int32)
    for i, r in enumerate(rows):
        out[i, : len(r)] = r
    return out


def batches(tickets, labels, rng):
    order = rng.permutation(len(tickets))
    chunk = BATCH * 16
    for start in range(0, len(order), chunk):
        part = sorted(order[start:start + chunk], key=lambda i: len(tickets[i]))
        groups = [part[i:i + BATCH] for i in range(0, len(part) - BATCH + 1, BATCH)]
        rng.shuffle(groups)
        for g in groups:
            yield collate([tickets[i] for i in g]), labels[g]


def build_step(model, optimizer, loss_fn):
    @tf.function(jit_compile=True, reduce_retracing=True)
    def train_step(tokens, y):
        with tf.GradientTape() as tape:
            logits = model(tokens, training=True)
            loss = loss_fn(y, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        grads, norm = tf.clip_by_global_norm(grads, 1.0)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        hits = tf.equal(tf.argmax(logits, -1, output_type=tf.int32), y)
        return loss, tf.reduce_mean(tf.cast(hits, tf.float32)), norm

    return train_step


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=64)
    args = ap.parse_args()
    t0 = time.perf_counter()
    keras.utils.set_random_seed(3)

    tickets, labels = make_tickets(BATCH * 160, seed=5)
    model = TicketModel()
    model(np.ones((2, 16), np.int32))
    optimizer = keras.optimizers.AdamW(1e-3, weight_decay=1e-4)
    optimizer.build(model.trainable_variables)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    train_step = build_step(model, optimizer, loss_fn)

    rng = np.random.default_rng(11)
    stream = batches(tickets, labels, rng)
    times, losses, accs = [], [], []
    for step in range(args.steps):
        s = time.perf_counter()
        try:
            x, y = next(stream)
        except StopIteration:
            stream = batches(tickets, labels, rng)
            x, y = next(stream)
        loss, acc, norm = train_step(tf.constant(x), tf.constant(y))
        losses.append(float(loss))
        accs.append(float(acc))
        times.append(time.perf_counter() - s)
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} loss {np.mean(losses[-20:]):.3f} "
                  f"acc {np.mean(accs[-20:]):.3f} norm {float(norm):.2f}", flush=True)
    print(f"steps={len(times)} mean_step={np.mean(times):.4f} median_step={np.median(times):.4f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
