"""Walk-forward backtest of the multi-name equity model (graph mode, one head per name)."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

NAMES = 48
FACTORS = 40
WINDOW = 60
HIDDEN = 192
REFIT_STEPS = 3
REFIT_ROWS = 512
WARMUP_DAYS = 3
DAYS = 60


def make_market(days, seed=5):
    """Factor exposures, next-day returns and traded volume, day by day."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0, 0.3, (FACTORS, NAMES)).astype(np.float32)
    factors = rng.normal(0, 1, (days + WINDOW, 64, FACTORS)).astype(np.float32)
    noise = rng.normal(0, 1, (days + WINDOW, 64, NAMES)).astype(np.float32)
    returns = np.tanh(factors @ loadings) + noise
    volume = rng.lognormal(0, 1, (days + WINDOW, NAMES)).astype(np.float32)
    return factors, returns, volume


def dense(x, units, name, activation=None):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [int(x.shape[-1]), units], initializer=tf.glorot_uniform_initializer(seed=1))
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
        y = tf.matmul(x, w) + b
        return activation(y) if activation else y


class DeskModel:
    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, FACTORS], "factors")
        self.y = tf.placeholder(tf.float32, [None, NAMES], "returns")
        self.weight = tf.placeholder(tf.float32, [NAMES], "weight")
        trunk = dense(self.x, HIDDEN, "trunk1", tf.nn.relu)
        trunk = dense(trunk, HIDDEN, "trunk2", tf.nn.relu)
        self.signals = []
        for k in range(NAMES):
            h = dense(trunk, 12, "name%02d/hidden" % k, tf.nn.tanh)
            self.signals.append(tf.squeeze(dense(h, 1, "name%02d/out" % k), 1))
        self.prediction = tf.stack(self.signals, axis=1)
        self.loss = tf.reduce_mean(self.weight * tf.square(self.prediction - self.y))
        self.train = tf.train.MomentumOptimizer(0.02, 0.9).minimize(self.loss)


def refit(sess, model, factors, returns, weight, rng):
    x = factors.reshape(-1, FACTORS)
    y = returns.reshape(-1, NAMES)
    for _ in range(REFIT_STEPS):
        rows = rng.integers(0, len(x), REFIT_ROWS)
        _, loss = sess.run([model.train, model.loss],
                           {model.x: x[rows], model.y: y[rows], model.weight: weight})
    return loss


def liquid_names(volume):
    """Names that pass the desk's liquidity screen on the day."""
    return np.flatnonzero(volume > 1.0)


def score(sess, model, bars, names):
    return sess.run(model.prediction, {model.x: bars})[:, names]


def day_pnl(signal, realised):
    position = np.sign(signal) * np.minimum(np.abs(signal), 1.0)
    return float(np.mean(np.sum(position * realised, axis=1)))


def main():
    tf.set_random_seed(1)
    rng = np.random.default_rng(9)
    factors, returns, volume = make_market(WARMUP_DAYS + DAYS)
    model = DeskModel()
    pnl = []
    bars_scored = 0
    started = None
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for day in range(WARMUP_DAYS + DAYS):
            if day == WARMUP_DAYS:
                started = time.perf_counter()
                bars_scored = 0
            now = day + WINDOW
            names = liquid_names(volume[now])
            weight = (volume[now - WINDOW:now].mean(0) > 1.0).astype(np.float32)
            loss = refit(sess, model, factors[day:now], returns[day:now], weight, rng)
            signal = score(sess, model, factors[now], names)
            pnl.append(day_pnl(signal, returns[now][:, names]))
            bars_scored += len(factors[now])
            if day % 20 == 0:
                print("day %d names %d loss %.4f pnl %.3f" % (day, len(names), loss, np.sum(pnl)))
        seconds = time.perf_counter() - started
    print("sharpe %.2f" % (np.mean(pnl) / np.std(pnl) * np.sqrt(252)))
    print(json.dumps({"samples": bars_scored, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
