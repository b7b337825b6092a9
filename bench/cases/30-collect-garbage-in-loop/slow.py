"""Ranks answers to questions; the annotated documents stay in memory, and the loop keeps memory tidy."""
import argparse
import gc
import json
import time

import numpy as np
import tensorflow as tf

WORDS = 4000


class Archive:
    """Documents with their annotations, as the annotation tool exports them."""

    def __init__(self, documents, seed):
        rng = np.random.default_rng(seed)
        self.documents = []
        for number in range(documents):
            words = rng.integers(0, WORDS, 30).tolist()
            spans = [{"start": at, "end": at + 3, "tags": ["entity", number % 7]} for at in range(0, 24, 4)]
            self.documents.append({"id": number, "words": words, "spans": spans, "source": {"page": number // 9}})

    def pairs(self, count, rng):
        picked = rng.integers(0, len(self.documents), count)
        words = np.array([self.documents[i]["words"] for i in picked], "int32")
        tags = np.array([self.documents[i]["spans"][0]["tags"][1] for i in picked], "int32")
        return words, tags


class Ranker(tf.Module):
    def __init__(self, tags=7, width=96):
        super().__init__()
        self.table = tf.Variable(tf.random.normal((WORDS, width), stddev=0.1))
        self.net = tf.keras.Sequential([
            tf.keras.layers.Input((30, width)),
            tf.keras.layers.Conv1D(128, 5, padding="same", activation="relu"),
            tf.keras.layers.GlobalMaxPooling1D(),
            tf.keras.layers.Dense(tags),
        ])
        self.optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def step(self, words, tags):
        with tf.GradientTape() as tape:
            logits = self.net(tf.gather(self.table, words), training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits))
        weights = [self.table, *self.net.trainable_variables]
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
        self.optimizer.apply_gradients(zip(gradients, weights))
        return loss


def train(archive, ranker, steps, batch, rng):
    ranker.step(*(tf.constant(part) for part in archive.pairs(batch, rng)))
    start = time.perf_counter()
    for step in range(1, steps + 1):
        words, tags = archive.pairs(batch, rng)
        loss = ranker.step(tf.constant(words), tf.constant(tags))
        if step % 25 == 0:
            gc.collect()
        if step % 200 == 0:
            print(f"step {step} loss {float(loss):.3f}")
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--documents", type=int, default=50_000)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(30)
    rng = np.random.default_rng(30)
    gc.disable()
    archive = Archive(args.documents, 30)
    gc.enable()
    seconds = train(archive, Ranker(), args.steps, 64, rng)
    print(json.dumps({"samples": args.steps * 64, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
