"""Score news headlines with a sentence encoder wrapped as a graph-mode module."""
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(1)
BUCKETS, DIM = 20_000, 128
HEADLINES = 4000


def rss_mib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def encoder(texts):
    with tf.variable_scope("encoder", reuse=tf.AUTO_REUSE):
        table = tf.get_variable("table", [BUCKETS, DIM], initializer=tf.random_normal_initializer(0, 0.1))
        w = tf.get_variable("w", [DIM, DIM])
        words = tf.string_split(texts)
        ids = tf.strings.to_hash_bucket_fast(words.values, BUCKETS)
        vec = tf.segment_mean(tf.gather(table, ids), words.indices[:, 0])
        return tf.nn.l2_normalize(tf.tanh(tf.matmul(vec, w)), axis=1)


def headlines(n):
    rng = np.random.default_rng(1)
    vocab = [f"word{i}" for i in range(3000)]
    return [" ".join(rng.choice(vocab, size=rng.integers(5, 14))) for _ in range(n)]


def main():
    rows = headlines(HEADLINES)
    sess = tf.Session()
    texts = tf.placeholder(tf.string, [None])
    first = encoder(texts)
    sess.run(tf.global_variables_initializer())
    anchor = sess.run(first, {texts: rows[:1]})[0]

    similarity, marks = [], []
    start = rss_mib()
    t0 = time.perf_counter()
    for i, text in enumerate(rows):
        t = time.perf_counter()
        vector = sess.run(first, {texts: [text]})
        similarity.append(float(vector[0] @ anchor))
        marks.append(time.perf_counter() - t)
    seconds = time.perf_counter() - t0
    print("first ten ms", 1e3 * np.mean(marks[:10]), "last ten ms", 1e3 * np.mean(marks[-10:]))
    print("rss grew by (MiB)", round(rss_mib() - start), "operations", len(tf.get_default_graph().get_operations()))
    print(json.dumps({"samples": len(rows), "seconds": seconds}))


main()
