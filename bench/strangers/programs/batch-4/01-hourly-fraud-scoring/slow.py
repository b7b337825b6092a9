"""Card fraud scoring: train a canned-style Estimator on last month, then score the hourly drops."""
import glob
import json
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

NUM_NUMERIC = 48
MERCHANT_BUCKETS = 5000
ROWS_PER_HOUR = 5000
WARMUP_HOURS = 2
HOURS = 30


def make_rows(rng, n):
    x = rng.normal(size=(n, NUM_NUMERIC)).astype(np.float32)
    merchant = rng.integers(0, MERCHANT_BUCKETS, size=n).astype(np.int64)
    logit = x[:, 0] * 1.4 - x[:, 3] + 0.5 * x[:, 7] * x[:, 9] + (merchant % 37 == 0) * 2.0 - 3.0
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return x, merchant, y


def write_drops(folder, rng):
    for hour in range(WARMUP_HOURS + HOURS):
        x, merchant, _ = make_rows(rng, ROWS_PER_HOUR)
        np.savez(os.path.join(folder, "tx_%03d.npz" % hour), amount_feats=x, merchant=merchant)
    return sorted(glob.glob(os.path.join(folder, "tx_*.npz")))


def model_fn(features, labels, mode, params):
    with tf.compat.v1.variable_scope("tower"):
        table = tf.compat.v1.get_variable("merchant", [MERCHANT_BUCKETS, params["emb"]])
        net = tf.concat([features["amount_feats"], tf.nn.embedding_lookup(table, features["merchant"])], axis=1)
        for i, units in enumerate(params["hidden"]):
            w = tf.compat.v1.get_variable("w%d" % i, [net.shape[1], units])
            b = tf.compat.v1.get_variable("b%d" % i, [units], initializer=tf.compat.v1.zeros_initializer())
            net = tf.nn.relu(tf.matmul(net, w) + b)
        w = tf.compat.v1.get_variable("w_out", [net.shape[1], 1])
        logits = tf.squeeze(tf.matmul(net, w), axis=1)
    score = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"score": score})
    loss = tf.compat.v1.losses.sigmoid_cross_entropy(labels, logits)
    train_op = tf.compat.v1.train.AdagradOptimizer(0.05).minimize(
        loss, global_step=tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train(est, rng):
    x, merchant, y = make_rows(rng, 30000)

    def input_fn():
        ds = tf.data.Dataset.from_tensor_slices(({"amount_feats": x, "merchant": merchant}, y))
        return ds.shuffle(30000, seed=3).repeat().batch(512).prefetch(2)

    est.train(input_fn, steps=120)


def load_drop(path):
    with np.load(path) as z:
        return {"amount_feats": z["amount_feats"], "merchant": z["merchant"]}


def score_drop(est, path):
    feats = load_drop(path)

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(feats).batch(ROWS_PER_HOUR)

    out = list(est.predict(input_fn, yield_single_examples=False))
    return np.concatenate([o["score"] for o in out])


def score_all(est, paths):
    for path in paths:
        yield path, score_drop(est, path)


def main():
    rng = np.random.default_rng(11)
    with tempfile.TemporaryDirectory() as work:
        drops = write_drops(work, rng)
        config = tf.estimator.RunConfig(model_dir=os.path.join(work, "model"), tf_random_seed=5,
                                        save_checkpoints_steps=1000)
        est = tf.estimator.Estimator(model_fn, config=config, params={"emb": 16, "hidden": [512, 256]})
        train(est, rng)

        alerts, rows, total, start = [], 0, 0.0, None
        for i, (path, scores) in enumerate(score_all(est, drops)):
            if i == WARMUP_HOURS:
                start = time.perf_counter()
            if i >= WARMUP_HOURS:
                rows += len(scores)
            hot = np.flatnonzero(scores > 0.8)
            alerts.extend((os.path.basename(path), int(r)) for r in hot)
            total += float(scores.sum())
        seconds = time.perf_counter() - start
        print("alerts %d  mean score %.5f" % (len(alerts), total / (ROWS_PER_HOUR * len(drops))))
        print(json.dumps({"samples": rows, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
