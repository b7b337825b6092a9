"""Evolution strategy around a graph-mode TensorFlow model: weights are set from outside."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)
IN, HID = 20, 32
GENERATIONS = 200
POP = 12

rng = np.random.default_rng(0)
data = rng.normal(size=(256, IN)).astype("float32")
target = np.sin(data[:, :1]) + data[:, 1:2]

x = tf.placeholder(tf.float32, [None, IN])
y = tf.placeholder(tf.float32, [None, 1])
w1 = tf.get_variable("w1", [IN, HID])
b1 = tf.get_variable("b1", [HID])
w2 = tf.get_variable("w2", [HID, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) - y))
params = [w1, b1, w2]
sess = tf.Session()
sess.run(tf.global_variables_initializer())


slots = [tf.placeholder(tf.float32, p.shape) for p in params]
setters = [tf.assign(p, s) for p, s in zip(params, slots)]


def set_weights(values):
    sess.run(setters, dict(zip(slots, values)))


def fitness(values):
    set_weights(values)
    return sess.run(loss, {x: data, y: target})


def noise():
    return [rng.normal(0, 0.1, size=p.shape.as_list()).astype("float32") for p in params]


def main():
    centre = sess.run(params)
    fitness(centre)
    marks = []
    t0 = time.perf_counter()
    for g in range(GENERATIONS):
        t = time.perf_counter()
        trial = [[c + e for c, e in zip(centre, noise())] for _ in range(POP)]
        score = [fitness(w) for w in trial]
        best = np.argsort(score)[: POP // 4]
        centre = [np.mean([trial[i][k] for i in best], axis=0) for k in range(len(params))]
        marks.append(round(time.perf_counter() - t, 3))
    seconds = time.perf_counter() - t0
    print("seconds per generation: first", marks[0], "last", marks[-1])
    print("best loss", min(score))
    print(json.dumps({"samples": GENERATIONS * POP, "seconds": seconds}))


main()
