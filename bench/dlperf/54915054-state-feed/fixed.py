"""Graph-mode filter bank: variables hold the signal block and are refreshed from NumPy."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(3)
BLOCK, TAPS, BANDS = 4096, 65, 16
BLOCKS = 1000


def signal(n):
    rng = np.random.default_rng(3)
    t = np.arange(BLOCK)
    for k in range(n):
        yield (np.sin(t * 0.01 * (k % 7 + 1)) + rng.normal(0, 0.1, BLOCK)).astype("float32")


block = tf.Variable(tf.zeros((BLOCK,)), trainable=False)
gain = tf.Variable(tf.zeros((BANDS,)), trainable=False)
taps = tf.Variable(tf.random_normal((TAPS, 1, BANDS), stddev=0.1))
filtered = tf.nn.conv1d(block[None, :, None], taps, stride=1, padding="SAME")[0]
power = tf.reduce_mean(tf.square(filtered), axis=0) * (1.0 + gain)
loss = tf.reduce_mean(tf.square(power - 0.5))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def refresh(sess, values, gains):
    block.load(values, sess)
    gain.load(gains, sess)


def main():
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    rng = np.random.default_rng(4)
    value, t0 = 0.0, None
    for k, values in enumerate(signal(BLOCKS + 2)):
        if k == 2:
            t0 = time.perf_counter()
        refresh(sess, values, rng.random(BANDS).astype("float32") * 0.1)
        _, value = sess.run([train, loss])
    seconds = time.perf_counter() - t0
    print("loss", value)
    print(json.dumps({"samples": BLOCKS, "seconds": seconds}))


main()
