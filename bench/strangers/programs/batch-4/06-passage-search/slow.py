"""Dense passage search: index a corpus with a small text encoder and answer query micro-batches."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

VOCAB = 20000
N_PASSAGES = 48_000
PASSAGE_LEN = 48
QUERY_LEN = 12
DIM = 256
MICRO_BATCH = 8
TOP = 10
WARMUP, REQUESTS = 4, 80


def encoder():
    tokens = keras.Input((None,), dtype="int32")
    x = layers.Embedding(VOCAB, DIM)(tokens)
    gate = layers.Dense(1, activation="sigmoid")(x)
    x = keras.ops.sum(gate * x, axis=1)
    x = layers.Dense(512, activation="gelu")(x)
    x = layers.UnitNormalization()(layers.Dense(DIM)(x))
    return keras.Model(tokens, x)


def corpus(rng):
    base = rng.zipf(1.25, size=(N_PASSAGES, PASSAGE_LEN)) % VOCAB
    return base.astype(np.int32)


def query_stream(passages, n, rng):
    """Queries are a few words of some passage, so there is something to find."""
    for _ in range(n):
        rows = rng.integers(0, len(passages), size=MICRO_BATCH)
        cols = rng.permuted(np.tile(np.arange(PASSAGE_LEN), (MICRO_BATCH, 1)), axis=1)[:, :QUERY_LEN]
        yield passages[rows[:, None], cols]


class PassageIndex:
    def __init__(self, model):
        self.model = model
        self.encode = tf.function(model, input_signature=[tf.TensorSpec([None, None], tf.int32)])
        self.ids = []
        self.vectors = []

    def add(self, ids, tokens):
        emb = self.encode(tf.constant(tokens)).numpy()
        for i, vec in zip(ids, emb):
            self.ids.append(int(i))
            self.vectors.append(vec)

    def search(self, tokens, k):
        query = self.encode(tf.constant(tokens))
        matrix = tf.constant(np.stack(self.vectors))
        scores = tf.matmul(query, matrix, transpose_b=True)
        order = tf.argsort(scores, axis=-1, direction="DESCENDING", stable=True)[:, :k]
        best = tf.gather(scores, order, batch_dims=1)
        return self.lookup(order.numpy()), best.numpy()

    def lookup(self, rows):
        return [[self.ids[r] for r in row] for row in rows]


def build_index(model, passages):
    index = PassageIndex(model)
    for lo in range(0, len(passages), 2000):
        hi = min(lo + 2000, len(passages))
        index.add(range(100_000 + lo, 100_000 + hi), passages[lo:hi])
    return index


def serve(index, requests):
    hits, top_score = [], 0.0
    for tokens in requests:
        ids, scores = index.search(tokens, TOP)
        hits.append(ids)
        top_score += float(scores[:, 0].sum())
    return hits, top_score


def main():
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    passages = corpus(rng)
    index = build_index(encoder(), passages)
    serve(index, query_stream(passages, WARMUP, rng))
    requests = list(query_stream(passages, REQUESTS, rng))
    start = time.perf_counter()
    hits, top_score = serve(index, requests)
    seconds = time.perf_counter() - start
    print("checksum %d  mean top score %.5f" % (sum(sum(map(sum, h)) for h in hits) % 1_000_003,
                                               top_score / (REQUESTS * MICRO_BATCH)))
    print(json.dumps({"samples": REQUESTS * MICRO_BATCH, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
