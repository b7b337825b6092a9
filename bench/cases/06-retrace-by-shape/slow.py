"""Trains a sentence encoder on sentences of all lengths, longest of the batch first."""
import json
import time

import numpy as np
import tensorflow as tf

VOCABULARY = 3000


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(12, 400, count)
    return [rng.integers(1, VOCABULARY, n).astype("int32") for n in lengths]


def pad(rows):
    width = max(len(row) for row in rows)
    out = np.zeros((len(rows), width), "int32")
    for i, row in enumerate(rows):
        out[i, :len(row)] = row
    return out


def batches(rows, size):
    rows = sorted(rows, key=len, reverse=True)
    for start in range(0, len(rows), size):
        yield pad(rows[start:start + size])


class Encoder(tf.keras.Model):
    def __init__(self, width=64):
        super().__init__()
        self.embed = tf.keras.layers.Embedding(VOCABULARY, width)
        self.mix = [tf.keras.layers.Conv1D(width, 3, padding="same", activation="relu") for _ in range(4)]
        self.norm = [tf.keras.layers.LayerNormalization() for _ in range(4)]
        self.top = tf.keras.layers.Dense(VOCABULARY // 10)

    def call(self, tokens):
        mask = tf.cast(tokens > 0, tf.float32)[..., None]
        h = self.embed(tokens)
        for mix, norm in zip(self.mix, self.norm):
            h = norm(h + mix(h)) * mask
        pooled = tf.reduce_sum(h, 1) / (tf.reduce_sum(mask, 1) + 1e-6)
        return self.top(pooled)


class Trainer:
    def __init__(self):
        self.model = Encoder()
        self.optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def step(self, tokens):
        target = tf.math.floormod(tokens[:, 0], VOCABULARY // 10)
        with tf.GradientTape() as tape:
            logits = self.model(tokens)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(target, logits))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


def main():
    tf.keras.utils.set_random_seed(31)
    rows = sentences(720, 31)
    trainer = Trainer()
    trainer.step(pad(rows[:16]))
    seen = 0
    t0 = time.perf_counter()
    for tokens in batches(rows, 16):
        loss = trainer.step(tokens)
        seen += len(tokens)
    took = time.perf_counter() - t0
    print(f"last loss {float(loss):.3f}")
    print(json.dumps({"samples": seen, "seconds": round(took, 3)}))


if __name__ == "__main__":
    main()
