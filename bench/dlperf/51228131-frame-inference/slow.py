"""Frame-by-frame inference with a graph-mode network: preprocessing, net, postprocessing."""
import json
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(7)
H, W = 72, 96
FRAMES = 100
CLASSES = 6

frame_in = tf.placeholder(tf.float32, [1, H, W, 3])
with tf.variable_scope("net"):
    k1 = tf.get_variable("k1", [5, 5, 3, 16])
    k2 = tf.get_variable("k2", [3, 3, 16, 24])
    w = tf.get_variable("w", [24, CLASSES])
    h = tf.nn.relu(tf.nn.conv2d(frame_in, k1, 3, "SAME"))
    h = tf.nn.relu(tf.nn.conv2d(h, k2, 2, "SAME"))
    scores = tf.matmul(tf.reduce_mean(h, axis=[1, 2]), w)


def camera(n):
    rng = np.random.default_rng(7)
    for i in range(n):
        yield (rng.random((H + 8, W + 8, 3)) * 255).astype("uint8")


def infer(sess, picture):
    picture = tf.image.convert_image_dtype(picture, tf.float32)
    picture = tf.image.resize(picture[None], (H, W))
    value = sess.run(scores, {frame_in: sess.run(picture)})
    top = sess.run(tf.nn.top_k(tf.nn.softmax(value), k=3))
    return top.indices[0], top.values[0]


def main():
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    marks, seen = [], np.zeros(CLASSES)
    t0 = None
    for i, picture in enumerate(camera(FRAMES + 3)):
        if i == 3:
            t0 = time.perf_counter()
        t = time.perf_counter()
        which, prob = infer(sess, picture)
        seen[which] += prob
        marks.append(time.perf_counter() - t)
    seconds = time.perf_counter() - t0
    print("class mass", seen.round(1), "first 15 ms", 1e3 * np.mean(marks[3:18]), "last 15 ms", 1e3 * np.mean(marks[-15:]))
    print(json.dumps({"samples": FRAMES, "seconds": seconds}))


main()
