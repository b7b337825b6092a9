"""Trains a gated recurrent tagger step by step."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf


class Cell(tf.Module):
    """Minimal gated unit."""

    def __init__(self, inputs, units):
        super().__init__()
        self.units = units
        self.gate = tf.Variable(tf.random.normal((inputs + units, units), stddev=0.1))
        self.gate_bias = tf.Variable(tf.ones((units,)))
        self.new = tf.Variable(tf.random.normal((inputs + units, units), stddev=0.1))
        self.new_bias = tf.Variable(tf.zeros((units,)))

    def __call__(self, x, h):
        f = tf.sigmoid(tf.concat([x, h], 1) @ self.gate + self.gate_bias)
        n = tf.tanh(tf.concat([x, f * h], 1) @ self.new + self.new_bias)
        return (1 - f) * h + f * n


class Tagger(tf.Module):
    def __init__(self, vocabulary, tags, units=48):
        super().__init__()
        self.table = tf.Variable(tf.random.normal((vocabulary, 32), stddev=0.1))
        self.cell = Cell(32, units)
        self.out = tf.Variable(tf.random.normal((units, tags), stddev=0.1))

    def __call__(self, tokens):
        x = tf.gather(self.table, tokens)
        h = tf.zeros((tokens.shape[0], self.cell.units))
        logits = []
        for t in range(tokens.shape[1]):
            h = self.cell(x[:, t], h)
            logits.append(h @ self.out)
        return tf.stack(logits, 1)


def train_step(model, optimizer, tokens, tags):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tags, model(tokens)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip([tf.convert_to_tensor(g) for g in gradients], model.trainable_variables))
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=12)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(29)
    rng = np.random.default_rng(29)
    tokens = rng.integers(0, 500, (3200, args.length)).astype("int32")
    tags = (tokens // 2 % 8).astype("int32")
    data = tf.data.Dataset.from_tensor_slices((tokens, tags)).repeat().batch(args.batch, drop_remainder=True)
    model = Tagger(500, 8)
    optimizer = tf.keras.optimizers.SGD(0.2)
    batches = iter(data.prefetch(2))
    train_step(model, optimizer, *next(batches))
    start = time.perf_counter()
    for step in range(args.steps):
        loss = train_step(model, optimizer, *next(batches))
        if step % 100 == 99:
            print(f"{step + 1}: {float(loss):.3f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": args.steps * args.batch, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
