"""Bayesian logistic regression by Hamiltonian Monte Carlo."""
import json
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(21)
N, D = 500, 8
DRAWS = 2000
BURN = 10
LEAPS = 8
STEP_SIZE = 0.02


def observations():
    rng = np.random.default_rng(21)
    x = rng.normal(size=(N, D)).astype("float32")
    w = np.linspace(-1, 1, D).astype("float32")
    y = (rng.random(N) < 1 / (1 + np.exp(-x @ w))).astype("float32")
    return tf.constant(x), tf.constant(y)


X, Y = observations()


def log_prob(w):
    logits = tf.linalg.matvec(X, w)
    like = -tf.nn.sigmoid_cross_entropy_with_logits(labels=Y, logits=logits)
    return tf.reduce_sum(like) - 0.5 * tf.reduce_sum(w * w)


def grad_log_prob(w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = log_prob(w)
    return tape.gradient(value, w)


@tf.function
def transition(w):
    momentum = tf.random.normal((D,))
    q, p = w, momentum + 0.5 * STEP_SIZE * grad_log_prob(w)
    for _ in tf.range(LEAPS - 1):
        q = q + STEP_SIZE * p
        p = p + STEP_SIZE * grad_log_prob(q)
    q = q + STEP_SIZE * p
    p = p + 0.5 * STEP_SIZE * grad_log_prob(q)
    before = log_prob(w) - 0.5 * tf.reduce_sum(momentum**2)
    after = log_prob(q) - 0.5 * tf.reduce_sum(p**2)
    accept = tf.math.log(tf.random.uniform(())) < after - before
    return tf.where(accept, q, w), accept


def main():
    w = tf.zeros((D,))
    for _ in range(BURN):
        w, _ = transition(w)
    draws, accepted = [], 0
    t0 = time.perf_counter()
    for _ in range(DRAWS):
        w, ok = transition(w)
        draws.append(w.numpy())
        accepted += int(ok)
    seconds = time.perf_counter() - t0
    print("acceptance", accepted / DRAWS, "mean", np.mean(draws, axis=0).round(2))
    print(json.dumps({"samples": DRAWS, "seconds": seconds}))


main()
