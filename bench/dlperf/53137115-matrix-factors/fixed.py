"""Graph-mode matrix factorisation trained with alternating mini-batches."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(5)
USERS, ITEMS, RANK = 400, 300, 16
BATCH = 256
EPOCHS = 60
PER_EPOCH = 30

rng = np.random.default_rng(5)
true_u, true_v = rng.normal(size=(USERS, 4)), rng.normal(size=(ITEMS, 4))
u = tf.get_variable("u", [USERS, RANK])
v = tf.get_variable("v", [ITEMS, RANK])
rows_in = tf.placeholder(tf.int32, [None])
cols_in = tf.placeholder(tf.int32, [None])
stars_in = tf.placeholder(tf.float32, [None])
pred = tf.reduce_sum(tf.gather(u, rows_in) * tf.gather(v, cols_in), axis=1)
loss = tf.reduce_mean(tf.square(pred - stars_in))
step = tf.train.AdamOptimizer(0.02).minimize(loss)
error = tf.reduce_mean(tf.abs(pred - stars_in))


def ratings():
    rows = rng.integers(0, USERS, size=BATCH)
    cols = rng.integers(0, ITEMS, size=BATCH)
    return rows, cols, (true_u[rows] * true_v[cols]).sum(axis=1).astype("float32")


def main():
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    marks, log = [], []

    def epoch():
        t = time.perf_counter()
        for _ in range(PER_EPOCH):
            rows, cols, stars = ratings()
            feed = {rows_in: rows, cols_in: cols, stars_in: stars}
            sess.run(step, feed)
            log.append(sess.run(error, feed))
        marks.append(round(time.perf_counter() - t, 2))

    epoch()
    t0 = time.perf_counter()
    for _ in range(EPOCHS):
        epoch()
    seconds = time.perf_counter() - t0
    print("mean error", float(np.mean(log[-PER_EPOCH:])), "seconds per epoch", marks)
    print(json.dumps({"samples": EPOCHS * PER_EPOCH * BATCH, "seconds": seconds}))


main()
