"""Neuro-evolution: score a population of weight vectors on one Keras network."""
import json
import os
import time

import numpy as np
from tensorflow import keras

POP = 4
GENERATIONS = 3
N = 12_288


def rss_mib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def build():
    model = keras.Sequential(
        [
            keras.layers.Input((64,)),
            keras.layers.Dense(1024, activation="tanh"),
            keras.layers.Dense(1024, activation="tanh"),
            keras.layers.Dense(4, activation="softmax"),
        ]
    )
    model.compile(loss="sparse_categorical_crossentropy", optimizer="sgd", metrics=["accuracy"])
    return model


def mutate(weights, rng, sigma):
    return [w + rng.normal(0, sigma, size=w.shape).astype("float32") for w in weights]


def main():
    keras.utils.set_random_seed(2)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(N, 64)).astype("float32")
    y = (x[:, :4].argmax(axis=1)).astype("int64")
    model = build()
    parents = [model.get_weights()]

    def fitness(w):
        model.set_weights(w)
        loss, acc = model.test_on_batch(x, y)
        return acc

    fitness(parents[0])
    trail, best = [], 0.0
    t0 = time.perf_counter()
    for gen in range(GENERATIONS):
        children = [mutate(parents[i % len(parents)], rng, 0.05) for i in range(POP)]
        scored = sorted(((fitness(c), i) for i, c in enumerate(children)), reverse=True)
        parents = [children[i] for _, i in scored[:3]]
        best = max(best, scored[0][0])
        trail.append(round(rss_mib(), 1))
    seconds = time.perf_counter() - t0
    print("best accuracy", best)
    print("rss per generation (MiB)", trail)
    print(json.dumps({"samples": GENERATIONS * POP * N, "seconds": seconds}))


main()
