"""Offline analysis of an A/B test: conversion models per arm, hyper parameters chosen by k-fold cross validation."""
import itertools
import json
import os
import re
import time
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

ROWS = 12000
ACTIVE_USERS = 6000
PAGES = 400
ACCOUNT_ID_LIMIT = 240_000
EMBED = 16
BATCH = 128
FOLDS = 2
EPOCHS = 2
GRID = {"lr": [1e-3, 3e-3, 6e-3], "width": [48], "dropout": [0.1]}
DEVICES = ("iPhone", "Android", "Windows", "iPad")
AGENT = re.compile(r"\b(iPhone|Android|Windows|iPad)\b")


def make_log(seed=0):
    """One row a visit, as the tracker writes it."""
    rng = np.random.default_rng(seed)
    accounts = np.sort(rng.choice(ACCOUNT_ID_LIMIT, ACTIVE_USERS, replace=False))
    user = rng.integers(0, ACTIVE_USERS, ROWS)
    arm = rng.integers(0, 2, ROWS)
    page = rng.zipf(1.3, ROWS) % PAGES
    seconds = rng.lognormal(3.0, 1.0, ROWS)
    taste = rng.standard_normal(ACTIVE_USERS)
    logit = taste[user] + 0.3 * arm + 0.2 * np.sin(page) + 0.1 * np.log(seconds) - 1.2
    bought = (rng.random(ROWS) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    log, first = [], datetime(2025, 3, 3)
    for i in range(ROWS):
        log.append(json.dumps({
            "url": f"https://shop.example/item?account={accounts[user[i]]}&page={page[i]}&arm={'B' if arm[i] else 'A'}",
            "time": (first + timedelta(seconds=47 * i)).strftime("%Y-%m-%dT%H:%M:%S"),
            "agent": f"Mozilla/5.0 ({DEVICES[user[i] % len(DEVICES)]}; build {i % 97})",
            "dwell": round(float(seconds[i]), 2)}))
    return log, accounts, bought


def encode_visits(log, accounts):
    """Account ids become dense indices, the rest becomes small integers and numbers."""
    index = {int(a): i for i, a in enumerate(accounts)}
    users, pages, numeric = [], [], []
    for line in log:
        visit = json.loads(line)
        query = parse_qs(urlsplit(visit["url"]).query)
        users.append(index[int(query["account"][0])])
        pages.append(int(query["page"][0]))
        when = datetime.strptime(visit["time"], "%Y-%m-%dT%H:%M:%S")
        hour = (when.hour + when.minute / 60) * 2 * np.pi / 24
        found = AGENT.search(visit["agent"]).group(1)
        numeric.append([float(query["arm"][0] == "B"), np.log1p(visit["dwell"]), np.sin(hour), np.cos(hour)]
                       + [float(found == d) for d in DEVICES])
    return np.array(users, np.int32), np.array(pages, np.int32), np.array(numeric, np.float32)


def build_model(lr, width, dropout):
    user = keras.Input((), dtype="int32", name="user")
    page = keras.Input((), dtype="int32", name="page")
    numeric = keras.Input((8,), name="numeric")
    user_vec = keras.layers.Embedding(ACTIVE_USERS, EMBED)(user)
    page_vec = keras.layers.Embedding(PAGES, EMBED)(page)
    x = keras.layers.Concatenate()([user_vec, page_vec, numeric])
    x = keras.layers.Dense(width, activation="relu")(x)
    x = keras.layers.Dropout(dropout)(x)
    x = keras.layers.Dense(width // 2, activation="relu")(x)
    output = keras.layers.Dense(1, activation="sigmoid")(x)
    model = keras.Model([user, page, numeric], output)
    model.compile(optimizer=keras.optimizers.Adam(lr), loss="binary_crossentropy", jit_compile=False)
    return model


def fold_indices(seed=2):
    order = np.random.default_rng(seed).permutation(ROWS)
    parts = np.array_split(order, FOLDS)
    for k in range(FOLDS):
        yield np.concatenate([p for i, p in enumerate(parts) if i != k]), parts[k]


def train_one(model, arrays, target, rows, rng):
    seen = 0
    for _ in range(EPOCHS):
        order = rng.permutation(rows)
        for lo in range(0, len(order) - BATCH + 1, BATCH):
            take = order[lo:lo + BATCH]
            model.train_on_batch([a[take] for a in arrays], target[take])
            seen += BATCH
    return seen


def score(model, arrays, target, rows):
    guess = model.predict_on_batch([a[rows] for a in arrays])[:, 0]
    guess = np.clip(guess, 1e-6, 1 - 1e-6)
    truth = target[rows]
    return float(-np.mean(truth * np.log(guess) + (1 - truth) * np.log(1 - guess)))


def run_trial(params, users, pages, numeric, bought):
    losses, seen = [], 0
    rng = np.random.default_rng(7)
    for train_rows, test_rows in fold_indices():
        mean, std = numeric[train_rows].mean(0), numeric[train_rows].std(0) + 1e-6
        arrays = (users, pages, (numeric - mean) / std)
        model = build_model(**params)
        seen += train_one(model, arrays, bought, train_rows, rng)
        losses.append(score(model, arrays, bought, test_rows))
    return float(np.mean(losses)), seen


def main():
    keras.utils.set_random_seed(1)
    log, accounts, bought = make_log()
    users, pages, numeric = encode_visits(log, accounts)
    trials = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    results, samples = [], 0
    start = time.perf_counter()
    for number, params in enumerate(trials):
        loss, seen = run_trial(params, users, pages, numeric, bought)
        results.append((loss, params))
        print(f"trial {number}: {params} log loss {loss:.4f}", flush=True)
        if number == 0:
            start = time.perf_counter()
        else:
            samples += seen
    seconds = time.perf_counter() - start
    print("best", min(results, key=lambda r: r[0]))
    print(json.dumps({"samples": samples, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
