"""Screens stretches of a synthetic genome and calls the easy sites with a small net."""
import json
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import keras

STRETCH = 1_500
DEPTH = 34
FEATURES = 28
CLASSES = 3
STRETCHES = 420
WARM = 8
TRAIN_SITES = 24_000


def make_reference(rng, length):
    return rng.integers(0, 4, size=length, dtype=np.int8)


def sequence_reads(rng, reference, rate=0.012):
    """Pile of bases per position with sequencing errors and true variants."""
    length = len(reference)
    genotype = np.where(rng.random(length) < rate, rng.integers(1, CLASSES, length), 0)
    other = (reference + rng.integers(1, 4, length)) % 4
    share = np.array([0.0, 0.5, 1.0])[genotype]
    carries = rng.random((DEPTH, length)) < share
    pile = np.where(carries, other, reference).astype(np.int8)
    quality = np.clip(rng.normal(32, 6, (DEPTH, length)), 4, 41).astype(np.float32)
    wrong = rng.random((DEPTH, length)) < 10 ** (-quality / 10) * 2 + 0.004
    pile = np.where(wrong, (pile + rng.integers(1, 4, (DEPTH, length))) % 4, pile)
    return pile, quality, genotype


def count_bases(pile, quality):
    """Counts and mean qualities of the four bases at every position."""
    counts = np.stack([(pile == base).sum(axis=0) for base in range(4)], axis=1)
    sums = np.stack([np.where(pile == base, quality, 0).sum(axis=0) for base in range(4)], axis=1)
    return counts, sums / np.maximum(counts, 1)


def candidate_sites(reference, counts, least=4):
    support = counts.copy()
    support[np.arange(len(reference)), reference] = 0
    return np.flatnonzero(support.max(axis=1) >= least)


def site_features(reference, counts, means, sites):
    """One row of features for each candidate site, neighbours included."""
    rows = np.zeros((len(sites), FEATURES), dtype=np.float32)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows[:, 0:4] = share[sites]
    rows[:, 4:8] = means[sites] / 40.0
    rows[np.arange(len(sites)), 8 + reference[sites]] = 1.0
    alternate = share[sites].copy()
    alternate[np.arange(len(sites)), reference[sites]] = 0
    rows[:, 12] = alternate.max(axis=1)
    for slot, shift in enumerate((-2, -1, 1, 2)):
        near = np.clip(sites + shift, 0, len(reference) - 1)
        rows[:, 13 + slot] = share[near, reference[near]]
    rows[:, 17] = counts[sites].sum(axis=1) / DEPTH
    return rows


def build_caller():
    return keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def train_caller(rng):
    reference = make_reference(rng, TRAIN_SITES)
    pile, quality, genotype = sequence_reads(rng, reference, rate=0.3)
    counts, means = count_bases(pile, quality)
    sites = np.arange(len(reference))
    rows = site_features(reference, counts, means, sites)
    model = build_caller()
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(rows, genotype[sites], epochs=3, batch_size=256, verbose=0)
    return model


def classify(model, rows):
    """Class probabilities of all candidate sites of one stretch."""
    return np.asarray(model(rows, training=False))


def keep_confident(probabilities, floor=0.9):
    best = probabilities.argmax(axis=1)
    certain = probabilities[np.arange(len(best)), best] >= floor
    return best, certain


def screen(model, reference, pile, quality):
    counts, means = count_bases(pile, quality)
    sites = candidate_sites(reference, counts)
    if len(sites) == 0:
        return sites, np.zeros(0, int), np.zeros(0, bool)
    rows = site_features(reference, counts, means, sites)
    best, certain = keep_confident(classify(model, rows))
    return sites, best, certain


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    model = train_caller(rng)

    called = right = left_over = 0
    spent = 0.0
    slowest = 0.0
    for number in range(WARM + STRETCHES):
        reference = make_reference(rng, STRETCH)
        pile, quality, genotype = sequence_reads(rng, reference)
        started = time.perf_counter()
        sites, best, certain = screen(model, reference, pile, quality)
        took = time.perf_counter() - started
        if number >= WARM:
            spent += took
            slowest = max(slowest, took)
        called += int(certain.sum())
        right += int((best[certain] == genotype[sites[certain]]).sum())
        left_over += int((~certain).sum())

    print(
        f"called {called} sites ({right / max(called, 1):.3%} right), "
        f"{left_over} left for the large model, slowest stretch {slowest * 1e3:.0f} ms",
        file=sys.stderr,
    )
    wall = time.perf_counter() - begin
    print(json.dumps({"units": STRETCHES, "seconds": round(spent, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
