"""Beam search memory: pick the surviving beams and write the new token, per batch entry."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(19)
BATCH, BEAMS, LEN, VOCAB, DIM = 256, 4, 24, 300, 64
SEARCHES = 16

table = tf.random.normal((VOCAB, DIM)) * 0.3
wx = tf.random.normal((DIM, DIM)) * 0.2
wh = tf.random.normal((DIM, DIM)) * 0.2
wo = tf.random.normal((DIM, VOCAB)) * 0.3


def reorder(tokens, state, parent):
    tokens = tf.map_fn(lambda a: tf.gather_nd(a[0], a[1][:, None]), (tokens, parent), fn_output_signature=tf.int32)
    state = tf.map_fn(lambda a: tf.gather_nd(a[0], a[1][:, None]), (state, parent), fn_output_signature=tf.float32)
    return tokens, state


def write_token(tokens, pos, new):
    def one(a):
        seq, tok = a
        idx = tf.stack([tf.range(BEAMS), tf.fill([BEAMS], pos)], axis=1)
        return tf.tensor_scatter_nd_update(seq, idx, tok)

    return tf.map_fn(one, (tokens, new), fn_output_signature=tf.int32)


@tf.function
def search(start):
    tokens = tf.zeros((BATCH, BEAMS, LEN), tf.int32)
    tokens = write_token(tokens, 0, tf.tile(start[:, None], [1, BEAMS]))
    state = tf.zeros((BATCH, BEAMS, DIM))
    score = tf.tile(tf.constant([[0.0] + [-1e9] * (BEAMS - 1)]), [BATCH, 1])
    for pos in tf.range(1, LEN):
        last = tf.gather(tokens, pos - 1, axis=2)
        state = tf.tanh(tf.einsum("bkd,df->bkf", tf.gather(table, last), wx) + tf.einsum("bkd,df->bkf", state, wh))
        logp = tf.nn.log_softmax(tf.einsum("bkd,dv->bkv", state, wo))
        flat = tf.reshape(score[..., None] + logp, (BATCH, BEAMS * VOCAB))
        score, pick = tf.math.top_k(flat, k=BEAMS)
        tokens, state = reorder(tokens, state, pick // VOCAB)
        tokens = write_token(tokens, pos, pick % VOCAB)
    return tokens, score


def main():
    rng = np.random.default_rng(19)
    search(tf.constant(rng.integers(0, VOCAB, size=BATCH), tf.int32))
    t0 = time.perf_counter()
    checksum = 0
    for _ in range(SEARCHES):
        tokens, score = search(tf.constant(rng.integers(0, VOCAB, size=BATCH), tf.int32))
        checksum += int(tf.reduce_sum(tokens))
    seconds = time.perf_counter() - t0
    print("checksum", checksum)
    print(json.dumps({"samples": SEARCHES * BATCH, "seconds": seconds}))


main()
