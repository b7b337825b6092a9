"""Attention-based speller: log-mel frames of spoken part numbers -> characters.

Small listen-attend-spell model that we use to bootstrap transcripts for the
warehouse voice-picking project.  Real recordings live on the lab share; this
script works on synthetic utterances with the same statistics.
"""
import argparse
import json
import time

import numpy as np
import tensorflow as tf

CHARS = "_^0123456789ABCDEFGHJKLMNPQRSTUVWXYZ-"      # _ = pad, ^ = start
N_MELS = 40


def make_utterances(n, frames, label_len, seed=7):
    rng = np.random.default_rng(seed)
    prototypes = rng.normal(size=(len(CHARS), N_MELS)).astype("float32")
    labels = rng.integers(2, len(CHARS), size=(n, label_len))
    lengths = rng.integers(label_len // 2, label_len + 1, size=n)
    labels[np.arange(label_len)[None, :] >= lengths[:, None]] = 0
    per_char = frames // label_len
    feats = prototypes[np.repeat(labels, per_char, axis=1)]
    feats = feats + 0.3 * rng.normal(size=feats.shape)
    return feats.astype("float32"), labels.astype("int32")


class Listener(tf.keras.layers.Layer):
    """Conv front end with stride 2 in time, then a bidirectional GRU."""

    def __init__(self, units):
        super().__init__()
        self.conv = tf.keras.layers.Conv1D(units, 5, strides=2, padding="same", activation="relu")
        self.rnn = tf.keras.layers.Bidirectional(
            tf.keras.layers.GRU(units // 2, return_sequences=True))

    def call(self, mels):
        return self.rnn(self.conv(mels))


class AdditiveAttention(tf.keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.key_proj = tf.keras.layers.Dense(units)
        self.query_proj = tf.keras.layers.Dense(units)
        self.score = tf.keras.layers.Dense(1)

    def keys(self, memory):
        return self.key_proj(memory)

    def call(self, query, keys, memory):
        hidden = tf.nn.tanh(self.query_proj(query)[:, None, :] + keys)
        weights = tf.nn.softmax(self.score(hidden), axis=1)
        return tf.reduce_sum(weights * memory, axis=1)


class Speller(tf.keras.layers.Layer):
    def __init__(self, units, att_units, vocab):
        super().__init__()
        self.units = units
        self.embed = tf.keras.layers.Embedding(vocab, 64)
        self.attention = AdditiveAttention(att_units)
        self.cell = tf.keras.layers.GRUCell(units)
        self.out = tf.keras.layers.Dense(vocab)

    def start(self, memory):
        return tf.zeros([tf.shape(memory)[0], self.units])

    def step(self, char, state, keys, memory):
        context = self.attention(state, keys, memory)
        x = tf.concat([self.embed(char), context], axis=-1)
        out, state = self.cell(x, [state])
        return self.out(out), state[0]


class LAS(tf.keras.Model):
    def __init__(self, units=128, att_units=256):
        super().__init__()
        self.listener = Listener(units)
        self.speller = Speller(units, att_units, len(CHARS))

    def call(self, mels, labels):
        memory = self.listener(mels)
        keys = self.speller.attention.keys(memory)
        state = self.speller.start(memory)
        start_char = tf.ones_like(labels[:, :1])
        inputs = tf.concat([start_char, labels[:, :-1]], axis=1)
        logits = []
        for t in range(labels.shape[1]):
            step_logits, state = self.speller.step(inputs[:, t], state, keys, memory)
            logits.append(step_logits)
        return tf.stack(logits, axis=1)


def masked_loss(labels, logits):
    ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    mask = tf.cast(labels > 0, tf.float32)
    return tf.reduce_sum(ce * mask) / tf.reduce_sum(mask)


def make_train_step(model, optimizer):
    @tf.function
    def train_step(mels, labels):
        with tf.GradientTape() as tape:
            loss = masked_loss(labels, model(mels, labels))
        grads = tape.gradient(loss, model.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 5.0)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss
    return train_step


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=30)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--frames", type=int, default=240)
    ap.add_argument("--label-len", type=int, default=20)
    args = ap.parse_args()

    tf.keras.utils.set_random_seed(11)
    mels, labels = make_utterances(512, args.frames, args.label_len)
    ds = (tf.data.Dataset.from_tensor_slices((mels, labels))
          .shuffle(512, seed=3).repeat()
          .batch(args.batch, drop_remainder=True).prefetch(2))

    model = LAS()
    optimizer = tf.keras.optimizers.Adam(1e-3)
    train_step = make_train_step(model, optimizer)

    it = iter(ds)
    for _ in range(3):
        train_step(*next(it))

    t0 = time.perf_counter()
    for step in range(args.steps):
        loss = train_step(*next(it))
        if (step + 1) % 10 == 0:
            print(f"step {step + 1:4d}  loss {float(loss):.4f}")
    seconds = time.perf_counter() - t0
    print(json.dumps({"samples": args.steps * args.batch, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
