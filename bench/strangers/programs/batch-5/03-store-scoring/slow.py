"""Nightly demand forecast: one estimator, scored for every store of the chain.

The planners pick up one file per store (a column of expected units per
article), so the scoring job walks the list of stores.
"""
import json
import os
import tempfile
import time

import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

N_ARTICLES = 6000
N_NUMERIC = 24
HIDDEN = (384, 384, 192)


def article_table(rng, n):
    return {
        "article": rng.integers(0, N_ARTICLES, n).astype("int64"),
        "weekday": rng.integers(0, 7, n).astype("int64"),
        "numeric": rng.normal(size=(n, N_NUMERIC)).astype("float32"),
    }


def synthetic_units(rng, table):
    base = 3 + 2 * np.sin(table["article"] / 50.0) + 0.5 * (table["weekday"] >= 5)
    return rng.poisson(np.maximum(base + table["numeric"][:, 0], 0.1)).astype("float32")


def train_input_fn(table, units, batch):
    ds = tf.data.Dataset.from_tensor_slices((table, units))
    return ds.shuffle(4096, seed=1).repeat().batch(batch).prefetch(1)


def score_input_fn(table, batch=1024):
    starts = tf.data.Dataset.range(0, len(table["article"]), batch)
    return starts.map(lambda i: {key: column[i:i + batch]
                                 for key, column in tensors(table).items()})


def tensors(table):
    return {key: tf.constant(column) for key, column in table.items()}


def model_fn(features, labels, mode, params):
    v1 = tf.compat.v1
    with v1.variable_scope("forecast"):
        articles = v1.get_variable("articles", [N_ARTICLES, params["dim"]])
        weekdays = v1.get_variable("weekdays", [7, 8])
        net = tf.concat([
            tf.nn.embedding_lookup(articles, features["article"]),
            tf.nn.embedding_lookup(weekdays, features["weekday"]),
            features["numeric"],
        ], axis=1)
        for i, units in enumerate(params["hidden"]):
            net = v1.layers.dense(net, units, activation=tf.nn.relu, name=f"dense_{i}")
        log_rate = v1.layers.dense(net, 1, name="head")[:, 0]
    rate = tf.exp(log_rate)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"units": rate})
    loss = tf.reduce_mean(rate - labels * log_rate)
    optimizer = v1.train.AdamOptimizer(params["lr"])
    train_op = optimizer.minimize(loss, global_step=v1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def build_estimator(model_dir):
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=4,
                                    save_checkpoints_steps=1000)
    return tf.estimator.Estimator(model_fn, config=config,
                                  params={"dim": 32, "hidden": HIDDEN, "lr": 1e-3})


def write_forecast(out_dir, store, units):
    np.savetxt(os.path.join(out_dir, f"{store}.txt"), units[:200], fmt="%.3f")


def score_stores(estimator, tables, out_dir):
    total = {}
    for store, table in tables.items():
        predictions = estimator.predict(lambda: score_input_fn(table),
                                        yield_single_examples=False)
        units = np.concatenate([p["units"] for p in predictions])
        write_forecast(out_dir, store, units)
        total[store] = float(units.sum())
    return total


def main():
    rng = np.random.default_rng(12)
    work = tempfile.mkdtemp(prefix="forecast_")
    estimator = build_estimator(os.path.join(work, "model"))

    history = article_table(rng, 20000)
    units = synthetic_units(rng, history)
    estimator.train(lambda: train_input_fn(history, units, 256), steps=60)

    tables = {f"store_{i:03d}": article_table(rng, int(rng.integers(2500, 6000)))
              for i in range(22)}
    out_dir = os.path.join(work, "out")
    os.makedirs(out_dir)

    warm = {"store_000": tables["store_000"]}
    score_stores(estimator, warm, out_dir)

    t0 = time.perf_counter()
    total = score_stores(estimator, tables, out_dir)
    seconds = time.perf_counter() - t0
    rows = sum(len(t["article"]) for t in tables.values())
    print(f"{len(total)} stores, {rows} rows, mean forecast {sum(total.values()) / rows:.4f}")
    print(json.dumps({"samples": rows, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
