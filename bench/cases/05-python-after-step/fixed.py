"""Ranking model; keeps an exact running AUC over everything seen so far."""
import argparse
import json
import time

import numpy as np
import tensorflow as tf


class RunningAuc:
    """Area under the ROC curve of the last scores, from ranks."""

    def __init__(self, keep):
        self.keep = keep
        self.scores = []
        self.labels = []

    def update(self, scores, labels):
        self.scores.append(scores)
        self.labels.append(labels)
        del self.scores[:-self.keep], self.labels[:-self.keep]

    def value(self):
        labels = np.concatenate(self.labels)
        rank = np.concatenate(self.scores).argsort().argsort() + 1
        positives = labels.sum()
        pairs = positives * (len(labels) - positives)
        return (rank[labels > 0].sum() - positives * (positives + 1) / 2) / max(1.0, pairs)


def clicks(count, width, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, width)).astype("float32")
    logit = x @ rng.standard_normal(width) / np.sqrt(width) * 2
    return x, (rng.random(count) < 1 / (1 + np.exp(-logit))).astype("float32")


class Ranker(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.deep = tf.keras.Sequential([tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(128, "relu"),
                                         tf.keras.layers.Dense(1)])
        self.wide = tf.keras.layers.Dense(1)

    def call(self, x):
        return (self.deep(x) + self.wide(x))[:, 0]


def make_step(model, optimizer):
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            logit = model(x)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logit))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss, tf.sigmoid(logit)
    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1536000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--window", type=int, default=80)
    parser.add_argument("--every", type=int, default=100)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(23)
    x, y = clicks(args.rows, 64, 23)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(args.batch).prefetch(4)
    model = Ranker()
    step = make_step(model, tf.keras.optimizers.SGD(0.1))
    auc = RunningAuc(args.window)
    for bx, by in data.take(1):
        step(bx, by)
    t0 = time.perf_counter()
    for index, (bx, by) in enumerate(data, 1):
        loss, score = step(bx, by)
        auc.update(score.numpy(), by.numpy())
        if index % args.every == 0:
            best = auc.value()
        if index % 800 == 0:
            print(f"batch {index} loss {float(loss):.4f} auc {best:.4f}")
    seconds = time.perf_counter() - t0
    print(json.dumps({"samples": args.rows, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
