"""Deep Q-learning in graph mode: the target network is refreshed from the online one."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(6)
OBS, ACTIONS = 8, 4
BATCH = 64
STEPS = 90
SYNC_EVERY = 2

obs = tf.placeholder(tf.float32, [None, OBS])
nxt = tf.placeholder(tf.float32, [None, OBS])
act = tf.placeholder(tf.int32, [None])
rew = tf.placeholder(tf.float32, [None])


def net(x, scope):
    with tf.variable_scope(scope):
        h = x
        for i, (a, b) in enumerate([(OBS, 64), (64, 64), (64, ACTIONS)]):
            w = tf.get_variable(f"w{i}", [a, b])
            c = tf.get_variable(f"b{i}", [b], initializer=tf.zeros_initializer())
            h = tf.matmul(h, w) + c
            if i < 2:
                h = tf.nn.relu(h)
    return h


q = net(obs, "online")
q_next = net(nxt, "target")
goal = tf.stop_gradient(rew + 0.95 * tf.reduce_max(q_next, axis=1))
loss = tf.reduce_mean(tf.square(tf.gather(q, act, batch_dims=1) - goal))
online = tf.trainable_variables("online")
target = tf.trainable_variables("target")
train = tf.train.AdamOptimizer(1e-3).minimize(loss, var_list=online)


def transfer(sess):
    for o, t in zip(online, target):
        sess.run(t.assign(0.9 * t + 0.1 * o))


def main():
    rng = np.random.default_rng(6)
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    transfer(sess)
    marks = []
    t0 = time.perf_counter()
    for step in range(STEPS):
        t = time.perf_counter()
        s = rng.normal(size=(BATCH, OBS))
        a = rng.integers(0, ACTIONS, size=BATCH)
        _, value = sess.run([train, loss], {obs: s, nxt: s * 0.9, act: a, rew: (s[:, 0] > 0) * (a == 1)})
        if step % SYNC_EVERY == 0:
            transfer(sess)
        marks.append(time.perf_counter() - t)
    seconds = time.perf_counter() - t0
    print("loss", value, "first ten ms", 1e3 * np.mean(marks[:10]), "last ten ms", 1e3 * np.mean(marks[-10:]))
    print(json.dumps({"samples": STEPS * BATCH, "seconds": seconds}))


main()
